import { timeOf } from './appointments.ts';
import { type Answer, path } from './client.ts';
import { createCustomer } from './customers.ts';
import type { Change, Participation, Place, Provider, Timeslot } from './model.ts';
import { messageOf } from './participations.ts';
import type { Worker } from './worker.ts';

const rushSize = 8;
const minuteMs = 60_000;
/** So near, buffers count. */
const nearMs = 30 * minuteMs;
const dayMs = 24 * 60 * minuteMs;
/** In a week, because the pages of persons show the slots of the next 13 weeks. */
export const firstSlotDayMs = Math.floor(Date.now() / dayMs + 7) * dayMs;
/** Timeslots of a provider on a day. Later ones are on later days, so the older ones are wanted no more. */
const timeslotsPerDay = 12;
/** Resources whose opening hours are set, one by one or together. Clients make timeslots of them as well. */
export const resourcesWithHours = ['booth-1@load', 'booth-2@load'] as const;
/** The resources of a provider: few, so that slots are wanted by many. */
export const resources = ['chair-1@load', ...resourcesWithHours] as const;

export interface Slot extends Place {
  end: string;
  resourceReference: string;
}

/** Of two to four hours, which may overlap others of the resource. */
export async function createTimeslot({ provider, journal, random }: Worker): Promise<void> {
  const { tenant } = provider;
  const operation = journal.begin('create timeslot');
  const startMs = presentDayMs(provider) + random.integer(16, 30) * 30 * minuteMs;
  const timeslot: Timeslot = {
    provider,
    reference: tenant.newReference('timeslot'),
    resource: random.pick(resources),
    startMs,
    endMs: startMs + random.integer(4, 8) * 30 * minuteMs,
    rasterMs: random.pick([30, 60]) * minuteMs,
    bufferBefore: random.pick([0, 0, 0, 30]),
    bufferAfter: random.pick([0, 0, 15]),
    created: operation,
    deleted: undefined,
  };
  provider.timeslots.push(timeslot);
  const body = {
    timeslots: [
      {
        reference: timeslot.reference,
        resourceReference: timeslot.resource,
        start: timeOf(startMs),
        end: timeOf(timeslot.endMs),
        raster: timeslot.rasterMs / minuteMs,
        defaultCapacity: random.integer(1, 2),
        defaultAcceptBookings: true,
        bufferBefore: timeslot.bufferBefore,
        bufferAfter: timeslot.bufferAfter,
        state: 'BOOKABLE',
      },
    ],
  };
  await tenant.client.change(
    operation,
    { method: 'POST', path: `${provider.at}/timeslots`, body },
    { withKey: random.chance(0.3) },
  );
}

/** One that somebody of the provider has made. It is refused while there is a booking in it. */
export async function deleteTimeslot(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const existing = provider.timeslots.filter(
    ({ created, deleted }) => created.outcome === 'ok' && deleted === undefined,
  );
  if (existing.length < 6) return createTimeslot(worker);
  const timeslot = random.pick(existing);
  timeslot.deleted = journal.begin('delete timeslot');
  const request = { method: 'DELETE', path: provider.at + path`/timeslots/${timeslot.reference}` } as const;
  await provider.tenant.client.change(timeslot.deleted, request, { goneStatus: 404 });
  if (timeslot.deleted.outcome === 'failed') timeslot.deleted = undefined;
}

/** Mostly the first slot of the list, which others want as well. */
export async function bookSlot(worker: Worker): Promise<void> {
  const slot = chooseSlot(worker, await listSlots(worker));
  await (slot === undefined ? createTimeslot(worker) : bookPlace(worker, slot));
}

/** Many bookings at the same moment: of a slot that is still empty, and of those that overlap it or are near it. */
export async function rushForSlots(worker: Worker): Promise<void> {
  const { random } = worker;
  const slots = await listSlots(worker);
  const empty = slots.filter(({ appointmentReference }) => appointmentReference === null);
  if (empty.length === 0) return createTimeslot(worker);
  const wanted = random.pick(empty);
  const near = slots.filter(
    ({ start, end }) =>
      Date.parse(start) < Date.parse(wanted.end) + nearMs && Date.parse(end) > Date.parse(wanted.start) - nearMs,
  );
  await Promise.all(Array.from({ length: rushSize }, () => bookPlace(worker, random.pick(near))));
}

/** Also one that may not be free any more. */
export async function bookPlace(worker: Worker, slot: Slot): Promise<void> {
  const { provider, journal, random } = worker;
  if (worker.customers.length === 0) return createCustomer(worker);
  const { tenant } = provider;
  const customer = random.pick(worker.customers);
  const participation: Participation = {
    provider,
    reference: tenant.newReference('booking'),
    customer,
    appointment: undefined,
    ignoresCapacity: false,
    changes: [],
    links: [],
  };
  provider.participations.push(participation);
  const operation = journal.begin('book slot');
  const change: Change = {
    operation,
    to: random.pick(['BOOKED', 'BOOKED', 'REQUESTED', 'RESERVED']),
    notify: random.chance(0.85),
    place: slot,
  };
  participation.changes.push(change);
  const body = {
    reference: participation.reference,
    ...placeOf(slot),
    customerReference: customer.reference,
    state: change.to,
    message: messageOf(operation, customer),
  };
  const request = {
    method: 'POST',
    path: `${provider.at}/bookings`,
    query: { sendMails: change.notify },
    body,
  } as const;
  change.madeIn = appointmentIn(await tenant.client.change(operation, request, { withKey: random.chance(0.5) }));
  if (operation.outcome === 'ok') worker.participations.push(participation);
}

/** Two book while something happens that may close the slots, and one when it is done. */
export async function whileSomeBook(worker: Worker, slots: readonly Slot[], close: () => Promise<void>): Promise<void> {
  const bookOne = async (): Promise<void> => {
    if (slots.length > 0) await bookPlace(worker, worker.random.pick(slots));
  };
  await Promise.all([close(), bookOne(), bookOne()]);
  await bookOne();
}

/** To another slot. */
export async function moveBooking(worker: Worker): Promise<void> {
  const { journal, random } = worker;
  const bookings = worker.participations.filter(({ appointment }) => appointment === undefined).slice(-10);
  const slot = bookings.length === 0 ? undefined : chooseSlot(worker, await listSlots(worker));
  if (slot === undefined) return bookSlot(worker);
  const { provider, reference, changes, customer } = random.pick(bookings);
  const operation = journal.begin('move booking');
  const notify = random.chance(0.85);
  const change: Change = { operation, to: 'moved', notify, place: slot };
  changes.push(change);
  const body = { ...placeOf(slot), message: messageOf(operation, customer) };
  const request = {
    method: 'POST',
    path: provider.at + path`/bookings/${reference}`,
    query: { sendMails: notify },
    body,
  } as const;
  change.madeIn = appointmentIn(
    await provider.tenant.client.change(operation, request, { withKey: random.chance(0.5) }),
  );
}

/** That of a booking which was accepted. */
function appointmentIn(answer: Answer | undefined): string | undefined {
  return (answer?.body as { booking?: { slot: Place } } | undefined)?.booking?.slot.appointmentReference ?? undefined;
}

/** The place that a booking names. The answer of the list is not older than the request. */
function placeOf({ timeslotReference, appointmentReference, start }: Place): Record<string, unknown> {
  if (timeslotReference === null) return { appointmentReference };
  return { timeslotReference, start, productReference: 'product@load' };
}

/** On which slots are wanted. */
export function presentDayMs({ timeslots }: Provider): number {
  return firstSlotDayMs + Math.floor(timeslots.length / timeslotsPerDay) * dayMs;
}

/** Those of a resource on the present day and the one before, or none if there is no answer. */
export async function listSlots(
  { provider, random }: Worker,
  resource: string = random.pick(resources),
): Promise<Slot[]> {
  const dayStartMs = presentDayMs(provider);
  const query = {
    from: timeOf(dayStartMs - dayMs),
    to: timeOf(dayStartMs + dayMs),
    resourceRef: resource,
    limit: '20',
  };
  const answer = await provider.tenant.client.send({ method: 'GET', path: `${provider.at}/slots`, query });
  return answer?.status === 200 ? (answer.body as Slot[]) : [];
}

function chooseSlot({ random }: Worker, slots: readonly Slot[]): Slot | undefined {
  if (slots.length === 0) return undefined;
  return random.chance(0.6) ? slots[0] : random.pick(slots);
}
