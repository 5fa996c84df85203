import type { Change, Participation, Place, Provider } from '../load/model.ts';
import { isPossible } from './effects.ts';
import type { InjectedFault, Lists } from './evidence.ts';
import { mayComeLate } from './late-attempts.ts';

/** A time of a resource. */
export interface Bounds {
  resource: string;
  startMs: number;
  endMs: number;
}

/** A booking of a slot, or a move to one, that was accepted, and where it led. */
export interface Stay extends Bounds {
  participation: Participation;
  change: Change;
  /** The appointment; undefined if no answer named it. */
  appointment: string | undefined;
  /** When somebody began to end it, in milliseconds since the start of the load; Infinity if nobody did. */
  untilMs: number;
  /** No reservation, which ends by itself, and nothing else may have moved or ended it at any time. */
  isCertain: boolean;
}

/** All whose place is known. */
export function staysOf(
  provider: Provider,
  { appointments, participations }: Lists,
  injected: readonly InjectedFault[],
): Stay[] {
  const shown = new Map(participations.map((each) => [each.reference, each.appointmentReference]));
  const byReference = new Map(appointments.map((each) => [each.reference, each]));
  return provider.participations.flatMap((participation) =>
    participation.changes.flatMap((change, index) => {
      if (change.place === undefined || change.operation.outcome !== 'ok') return [];
      const untilMs = endOf(participation, index);
      const last = untilMs === Number.POSITIVE_INFINITY ? shown.get(participation.reference) : undefined;
      const appointment = change.madeIn ?? change.place.appointmentReference ?? last;
      const known = appointment === undefined ? undefined : byReference.get(appointment);
      const bounds = known === undefined ? boundsOf(change.place) : boundsOf(known);
      const isCertain =
        change.to !== 'RESERVED' &&
        participation.changes.every((other) => other === change || !mayComeLate(other.operation, injected));
      return bounds === undefined ? [] : [{ ...bounds, participation, change, appointment, untilMs, isCertain }];
    }),
  );
}

function endOf({ changes, customer }: Participation, index: number): number {
  const own = changes[index]!.operation;
  const others = changes.filter((_, each) => each !== index && changes[each]!.to !== 'attending');
  const ends = [
    ...others.map(({ operation }) => operation),
    ...(customer.erased === undefined ? [] : [customer.erased]),
  ]
    .filter((operation) => isPossible(operation) && operation.endedMs > own.startedMs)
    .map(({ startedMs }) => startedMs);
  return Math.min(...ends, Number.POSITIVE_INFINITY);
}

/** Whoever asks for the place that they have is told so, whatever has changed. */
export function hadPlaceBefore({ participation: { changes }, change, startMs }: Stay): boolean {
  return changes.some(
    (other) =>
      other !== change &&
      other.place !== undefined &&
      other.operation.startedMs < change.operation.endedMs &&
      isPossible(other.operation) &&
      Date.parse(other.place.start) === startMs,
  );
}

function boundsOf({ resourceReference, start, end }: Partial<Place>): Bounds | undefined {
  if (resourceReference === undefined || start === undefined || end === undefined) return undefined;
  return { resource: resourceReference, startMs: Date.parse(start), endMs: Date.parse(end) };
}

/** The booking, and where it is. */
export function describe({ participation, resource, startMs, endMs }: Stay): string {
  const { reference, provider } = participation;
  return `${reference} of ${provider.tenant.crmId}, on ${resource} from ${new Date(startMs).toISOString()} to ${new Date(endMs).toISOString()},`;
}
