import type { Provider, Timeslot } from '../load/model.ts';
import { resources } from '../load/slots.ts';
import { isPossible } from './effects.ts';
import type { Evidence, Lists, ShownAppointment, ShownTimeslot, Violation } from './evidence.ts';

const minuteMs = 60_000;

/** I19: between two appointments that bookings have made there is the longer of the two buffers. */
export function checkBuffers({ lists }: Evidence): Violation[] {
  return [...lists].flatMap(([provider, shown]) =>
    resources.flatMap((resource) => checkResource(provider, resource, shown)),
  );
}

function checkResource(provider: Provider, resource: string, { appointments, timeslots }: Lists): Violation[] {
  const active = appointments
    .filter(({ state, resourceReference }) => state === 'ACTIVE' && resourceReference === resource)
    .toSorted((a, b) => Date.parse(a.start) - Date.parse(b.start))
    .map((appointment) => ({ ...appointment, ...buffersOf(appointment, provider, timeslots) }));
  return active.flatMap((earlier, index) =>
    active
      .slice(index + 1)
      .filter((later) => {
        const betweenMs = Date.parse(later.start) - Date.parse(earlier.end);
        return betweenMs < Math.max(earlier.bufferAfter, later.bufferBefore) * minuteMs;
      })
      .map((later): Violation => ({
        invariant: 'I19',
        text: `${earlier.reference} (${earlier.bufferAfter} min after ${earlier.end}) and ${later.reference} (${later.bufferBefore} min before ${later.start}) are too near on ${resource} of ${provider.tenant.crmId}`,
      })),
  );
}

type Buffers = Pick<Timeslot, 'bufferBefore' | 'bufferAfter'>;

/**
 * Those of the timeslot in which it was made, which is one of those that bookings of this place have named: at least the
 * shortest ones. No timeslot gets others, and one that is gone may have had none.
 */
function buffersOf(
  { start, resourceReference }: ShownAppointment,
  { participations, timeslots }: Provider,
  shown: readonly ShownTimeslot[],
): Buffers {
  const named = participations
    .flatMap(({ changes }) => changes)
    .filter(({ place, operation }) => isPossible(operation) && Date.parse(place?.start ?? '') === Date.parse(start))
    .flatMap(({ place }) => place?.timeslotReference ?? []);
  const possible = [...new Set(named)].flatMap((reference): Buffers[] => {
    const own = timeslots.find((timeslot) => timeslot.reference === reference);
    if (own !== undefined) return own.resource === resourceReference ? [own] : [];
    const made = shown.find((timeslot) => timeslot.reference === reference);
    if (made !== undefined) return made.resourceReference === resourceReference ? [made] : [];
    return [{ bufferBefore: 0, bufferAfter: 0 }];
  });
  if (possible.length === 0) return { bufferBefore: 0, bufferAfter: 0 };
  return {
    bufferBefore: Math.min(...possible.map(({ bufferBefore }) => bufferBefore)),
    bufferAfter: Math.min(...possible.map(({ bufferAfter }) => bufferAfter)),
  };
}
