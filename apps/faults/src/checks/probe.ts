import { halfOpen } from '../faults/network.ts';
import { crashPoint, kill, rollingRestart } from '../faults/processes.ts';
import { isAccepted, type Probe } from '../load/probe.ts';
import type { Evidence, InjectedFault, ShownAppointment, Violation } from './evidence.ts';

/** How soon bookings have to be accepted again. */
const acceptedMs = 5_000;
/** What a client may be told while servers change their roles; no answer is permitted, too. */
const permitted = new Set([200, 201, 409, 503, undefined]);
/** Faults of the services themselves, which also keep bookings from being accepted. */
const others = new Set([kill, crashPoint, rollingRestart, halfOpen]);
/** How long a process takes to start, and half-open connections to be noticed. */
const afterMs = 10_000;

/**
 * I20: bookings are accepted again soon after another server has become the primary, or the same one is reached again.
 * Those that were accepted are there, each once, in the slot that was asked for.
 */
export async function checkProbe(
  { provider, bookings }: Probe,
  { injected, loadStartedMs }: Evidence,
): Promise<Violation[]> {
  const { body } = await provider.client.read(`${provider.at}/appointments`);
  const shown = Map.groupBy(
    (body as ShownAppointment[]).flatMap(({ start, participations }) =>
      participations.map(({ reference, state }) => ({ reference, state, startMs: Date.parse(start) })),
    ),
    ({ reference }) => reference,
  );
  const known = new Set(bookings.map(({ reference }) => reference));
  return [
    ...[...Map.groupBy(bookings, ({ status }) => status)]
      .filter(([status]) => !permitted.has(status))
      .map(([status, all]) =>
        violation(`${all.length} bookings were answered with ${status}, the first one was ${all[0]!.reference}`),
      ),
    ...bookings.flatMap((booking) => {
      const places = shown.get(booking.reference) ?? [];
      const isThere = places.length === 1 && places[0]!.state === 'BOOKED' && places[0]!.startMs === booking.startMs;
      const isRight = isThere ? booking.status !== 409 : places.length === 0 && !isAccepted(booking);
      const { reference, status } = booking;
      return isRight ? [] : [violation(`${reference}, answered with ${status}, is there ${places.length} times`)];
    }),
    ...[...shown.keys()]
      .filter((reference) => !known.has(reference))
      .map((reference) => violation(`nobody has booked ${reference}`)),
    ...injected
      .filter((fault) => !isDisturbed(fault, { injected, loadStartedMs }))
      .filter(({ recovery }) => recovery !== undefined && recovery.tookMs > acceptedMs)
      .map(({ fault, what, recovery }) =>
        violation(
          `${(recovery!.tookMs / 1_000).toFixed(1)} s without a booking after ${fault.id} ${fault.name}, ${what}`,
        ),
      ),
  ];
}

function isDisturbed(
  { recovery }: InjectedFault,
  { injected, loadStartedMs }: Pick<Evidence, 'injected' | 'loadStartedMs'>,
): boolean {
  if (recovery === undefined) return false;
  const atMs = recovery.atMs - loadStartedMs;
  return injected.some(
    ({ fault, startedMs, endedMs }) => others.has(fault) && startedMs < atMs + acceptedMs && endedMs + afterMs > atMs,
  );
}

function violation(text: string): Violation {
  return { invariant: 'I20', text };
}
