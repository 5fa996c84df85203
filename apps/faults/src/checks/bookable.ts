import type { Random } from '@scheduling/testing/random';
import { timeOf } from '../load/appointments.ts';
import type { Provider } from '../load/model.ts';
import type { Lists, ShownTimeslot, Violation } from './evidence.ts';

/** Of those that clients have made; besides, one of hours, and one that they have hidden. */
const timeslotsTried = 3;
const minuteMs = 60_000;

interface ListedSlot {
  start: string;
  timeslotReference: string | null;
}

/**
 * I11: what the list of slots offers can be booked, and what it does not offer cannot. Each step of some timeslots is
 * held, right after it was asked for.
 */
export async function checkBookable(
  provider: Provider,
  { timeslots }: Pick<Lists, 'timeslots'>,
  random: Random,
): Promise<Violation[]> {
  const [made, own] = [timeslots.filter(({ fromHours }) => fromHours), timeslots.filter(({ fromHours }) => !fromHours)];
  const hidden = made.filter(({ state }) => state === 'CREATED');
  const violations: Violation[] = [];
  for (const timeslot of [
    ...random.shuffled(own).slice(0, timeslotsTried),
    ...random.shuffled(made).slice(0, 1),
    ...random.shuffled(hidden).slice(0, 1),
  ]) {
    const [startMs, endMs, rasterMs] = [
      Date.parse(timeslot.start),
      Date.parse(timeslot.end),
      timeslot.raster * minuteMs,
    ];
    for (let atMs = startMs; atMs + rasterMs <= endMs; atMs += rasterMs)
      violations.push(...(await checkStep(provider, timeslot, atMs)));
  }
  return violations;
}

async function checkStep(provider: Provider, timeslot: ShownTimeslot, atMs: number): Promise<Violation[]> {
  const { reference, resourceReference: resource, raster } = timeslot;
  const { client, newReference } = provider.tenant;
  const start = timeOf(atMs);
  const query = { from: start, to: timeOf(atMs + raster * minuteMs), resourceRef: resource };
  const slots = (await client.read(`${provider.at}/slots`, query)).body as ListedSlot[];
  const isListed = slots.some((slot) => slot.start === start && slot.timeslotReference === reference);
  const body = {
    reference: newReference('try'),
    timeslotReference: reference,
    start,
    productReference: 'product@load',
    state: 'RESERVED',
  };
  const answer = await client.send({ method: 'POST', path: `${provider.at}/bookings`, body });
  if (answer?.status === (isListed ? 201 : 409)) return [];
  return [
    {
      invariant: 'I11',
      text: `${start} of ${reference} is ${isListed ? '' : 'not '}listed, but booking it got ${answer?.status} ${answer?.text}`,
    },
  ];
}
