import type { Provider } from '../load/model.ts';
import { resources } from '../load/slots.ts';
import type { ShownAppointment, Violation } from './evidence.ts';

/**
 * I1: nobody has a seat too many, except for those who were added deliberately. I10: of the appointments that bookings
 * have made, no two overlap on a resource. True at every moment, so this is also asked while things break.
 */
export function checkSeats(provider: Provider, appointments: readonly ShownAppointment[]): Violation[] {
  return [...checkCapacities(provider, appointments), ...checkOverlaps(appointments)];
}

function checkCapacities(provider: Provider, appointments: readonly ShownAppointment[]): Violation[] {
  const deliberate = new Set([
    ...provider.appointments.flatMap(({ embedded }) => embedded.map(({ reference }) => reference)),
    ...provider.participations.filter(({ ignoresCapacity }) => ignoresCapacity).map(({ reference }) => reference),
  ]);
  return appointments.flatMap(({ reference, capacity, participations }) => {
    const seated = participations.filter(
      (each) => (each.state === 'BOOKED' || each.state === 'RESERVED') && !deliberate.has(each.reference),
    );
    if (seated.length <= capacity) return [];
    return [
      {
        invariant: 'I1',
        text: `${reference} of ${provider.tenant.crmId} has ${capacity} seats, but they are taken by ${seated.map((each) => each.reference).join(', ')}`,
      },
    ];
  });
}

function checkOverlaps(appointments: readonly ShownAppointment[]): Violation[] {
  const booked = appointments.filter(
    ({ state, resourceReference }) =>
      state === 'ACTIVE' && resources.some((resource) => resource === resourceReference),
  );
  const sorted = booked.toSorted((a, b) => a.start.localeCompare(b.start));
  return sorted.flatMap((one, index) =>
    sorted
      .slice(index + 1)
      .filter((other) => other.resourceReference === one.resourceReference && other.start < one.end)
      .map((other): Violation => ({
        invariant: 'I10',
        text: `${one.reference} and ${other.reference} overlap on ${one.resourceReference}`,
      })),
  );
}
