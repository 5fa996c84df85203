import type { Random } from '@scheduling/testing/random';
import { timeOf } from '../load/appointments.ts';
import type { Provider, Timeslot } from '../load/model.ts';
import { isDone } from './effects.ts';
import type { Violation } from './evidence.ts';

const timeslotsTried = 3;

interface ListedSlot {
  start: string;
  timeslotReference: string | null;
}

/**
 * I11: what the list of slots offers can be booked, and what it does not offer cannot. Each step of some timeslots is
 * held, right after it was asked for.
 */
export async function checkBookable(provider: Provider, random: Random): Promise<Violation[]> {
  const existing = provider.timeslots.filter(({ created, deleted }) => isDone(created) && !isDone(deleted));
  const violations: Violation[] = [];
  for (const timeslot of random.shuffled(existing).slice(0, timeslotsTried)) {
    const { startMs, endMs, rasterMs } = timeslot;
    for (let atMs = startMs; atMs + rasterMs <= endMs; atMs += rasterMs)
      violations.push(...(await checkStep(timeslot, atMs)));
  }
  return violations;
}

async function checkStep({ provider, reference, resource, rasterMs }: Timeslot, atMs: number): Promise<Violation[]> {
  const { client, newReference } = provider.tenant;
  const start = timeOf(atMs);
  const query = { from: start, to: timeOf(atMs + rasterMs), resourceRef: resource };
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
