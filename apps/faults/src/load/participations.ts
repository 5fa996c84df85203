import { createAppointment, openAppointments } from './appointments.ts';
import { path } from './client.ts';
import { createCustomer, personMark } from './customers.ts';
import type { Operation } from './journal.ts';
import type { Appointment, Customer, Participation, State } from './model.ts';
import type { Worker } from './worker.ts';

/** How a participation begins, more often BOOKED. */
const beginnings: State[] = ['BOOKED', 'BOOKED', 'BOOKED', 'RESERVED', 'REQUESTED', 'REQUESTED', 'CANCELED', 'DELETED'];
/** What is asked for later, whether or not it is allowed from the present state. */
const targets: State[] = ['BOOKED', 'BOOKED', 'CANCELED', 'CANCELED', 'DELETED'];

const rushSize = 6;

/** In one of the appointments that everybody wants. */
export async function book(worker: Worker): Promise<void> {
  const open = openAppointments(worker.provider);
  await (open.length === 0 ? createAppointment(worker) : take(worker, worker.random.pick(open)));
}

/** Many bookings of one appointment at the same moment, with as many customers as the worker has. */
export async function rushForSeats(worker: Worker): Promise<void> {
  const open = openAppointments(worker.provider);
  if (open.length === 0) return createAppointment(worker);
  const appointment = worker.random.pick(open);
  await Promise.all(Array.from({ length: rushSize }, () => take(worker, appointment)));
}

/**
 * A request that is confirmed, and then cancelled, as soon as the answer before is there: the mails about it must not
 * overtake each other.
 */
export async function changeAtOnce(worker: Worker): Promise<void> {
  const open = openAppointments(worker.provider);
  if (open.length === 0) return createAppointment(worker);
  const participation = await take(worker, worker.random.pick(open), { state: 'REQUESTED' });
  if (participation === undefined) return;
  for (const to of ['BOOKED', 'CANCELED'] as const) await move(worker, participation, to);
}

/**
 * For one of the worker's customers, and in any state, unless they are given. Returns the participation if it was
 * accepted.
 */
export async function take(
  worker: Worker,
  appointment: Appointment,
  given: { customer?: Customer; state?: State } = {},
): Promise<Participation | undefined> {
  const { provider, random } = worker;
  if (worker.customers.length === 0) {
    await createCustomer(worker);
    return undefined;
  }
  const participation: Participation = {
    provider,
    reference: provider.tenant.newReference('participation'),
    customer: given.customer ?? random.pick(worker.customers),
    appointment,
    ignoresCapacity: random.chance(0.1),
    changes: [],
    links: [],
  };
  provider.participations.push(participation);
  const operation = worker.journal.begin('create participation');
  const change = { operation, to: given.state ?? random.pick(beginnings), notify: random.chance(0.85) };
  participation.changes.push(change);
  const { customer } = participation;
  const body = {
    reference: participation.reference,
    appointmentReference: appointment.reference,
    customerReference: customer.reference,
    state: change.to,
    message: messageOf(operation, customer),
  };
  const query = { ignoreCapacity: participation.ignoresCapacity, sendMails: change.notify };
  await provider.tenant.client.change(
    operation,
    { method: 'POST', path: `${provider.at}/participations`, query, body },
    { withKey: random.chance(0.5) },
  );
  if (operation.outcome !== 'ok') return undefined;
  worker.participations.push(participation);
  return participation;
}

export async function moveToState(worker: Worker): Promise<void> {
  if (worker.participations.length === 0) return book(worker);
  await move(worker, worker.random.pick(worker.participations.slice(-20)), worker.random.pick(targets));
}

async function move(
  { random, journal }: Worker,
  { provider, reference, changes, customer }: Participation,
  to: State,
): Promise<void> {
  const operation = journal.begin('change participation');
  const change = { operation, to, notify: random.chance(0.85) };
  changes.push(change);
  const body = { state: change.to, message: messageOf(operation, customer) };
  const request = {
    method: 'POST',
    path: provider.at + path`/participations/${reference}`,
    query: { sendMails: change.notify },
    body,
  } as const;
  await provider.tenant.client.change(operation, request, { withKey: random.chance(0.5) });
}

/** By its token the mail about an operation is recognised; the rest is personal. */
export function messageOf({ token }: Operation, { provider, person }: Customer): string {
  return `${token} for ${personMark(provider.tenant.mark, person)}`;
}
