/** An event that has arrived, with all that its place in the feed depends on; see `IncomingEventTable`. */
export interface ArrivedEvent {
  crmId: string;
  id: string;
  subjectId: string;
  version: number;
  appointmentId: string | null;
  ordinal: number | null;
  previousAppointmentId: string | null;
  previousOrdinal: number | null;
  customerId: string | null;
  /** It has waited so long that it no longer waits for what it names. */
  isOverdue?: boolean;
}

/**
 * A place in a series of events whose numbers have no gap: the versions of a subject, or the ordinals of an
 * appointment.
 */
export interface Place {
  series: string;
  number: number;
}

export function versionsOf(crmId: string, subjectId: string): string {
  return `versions of ${subjectId} of ${crmId}`;
}

export function ordinalsOf(crmId: string, appointmentId: string): string {
  return `ordinals of ${appointmentId} of ${crmId}`;
}

/**
 * An event has a place in each series that it is part of; one that moves a participation in those of two appointments.
 */
export function placesOf({
  crmId,
  subjectId,
  version,
  appointmentId,
  ordinal,
  previousAppointmentId,
  previousOrdinal,
}: ArrivedEvent): Place[] {
  return [
    ...(version === 0 ? [] : [{ series: versionsOf(crmId, subjectId), number: version }]),
    ...(ordinal === null ? [] : [{ series: ordinalsOf(crmId, appointmentId ?? subjectId), number: ordinal }]),
    ...(previousOrdinal === null
      ? []
      : [{ series: ordinalsOf(crmId, previousAppointmentId!), number: previousOrdinal }]),
  ];
}

export interface OrderOptions {
  /** The most events to be returned. */
  limit: number;
  /** How long an event waits for the first event of what it names, in milliseconds. */
  waitMs: number;
}

/**
 * The events that are next, in their order in the feed. That is the order of the ids, which begin with the time. But an
 * event comes after those that precede it in each of its series, and after the first event of the customer that it
 * names, and of the appointment if it has no ordinal. Those whose predecessors have not arrived are left out.
 *
 * @param arrived by id
 * @param reached the last number of each series that is in the feed; it is updated
 */
export function orderEvents<Event extends ArrivedEvent>(
  arrived: Event[],
  reached: Map<string, number>,
  { limit, waitMs }: OrderOptions,
): Event[] {
  const ordered: Event[] = [];
  const waiting = new Map<string, Event[]>();
  for (const event of arrived) {
    // Those that were waiting for it follow it at once: they have earlier ids.
    const next = [event];
    while (next.length > 0 && ordered.length < limit) {
      const candidate = next.pop()!;
      const obstacle = findObstacle(candidate, reached, waitMs);
      if (obstacle !== undefined) {
        const others = waiting.get(obstacle) ?? [];
        others.push(candidate);
        waiting.set(obstacle, others);
        continue;
      }
      ordered.push(candidate);
      for (const reason of reach(candidate, reached)) {
        next.push(...(waiting.get(reason) ?? []).toReversed());
        waiting.delete(reason);
      }
    }
  }
  return ordered;
}

/**
 * The subjects whose last numbers decide whether an event has its place, if it has just arrived: not those of a series
 * in which it is the first, nor what is too old to be waited for.
 */
export function subjectsThatDecide(event: ArrivedEvent, waitMs: number): string[] {
  const series: [id: string | null, number: number | null][] = [
    [event.subjectId, event.version],
    [event.appointmentId ?? event.subjectId, event.ordinal],
    [event.previousAppointmentId, event.previousOrdinal],
  ];
  const continued = series.flatMap(([id, number]) => (id === null || (number ?? 0) <= 1 ? [] : [id]));
  return [...continued, ...namedBy(event).filter((id) => isNew(id, event, waitMs))];
}

/** The first thing that an event waits for. */
function findObstacle(event: ArrivedEvent, reached: Map<string, number>, waitMs: number): string | undefined {
  const missing = placesOf(event).find(({ series, number }) => number > (reached.get(series) ?? 0) + 1);
  if (missing !== undefined) return reasonOf({ series: missing.series, number: missing.number - 1 });
  if (event.version === 0 || event.isOverdue === true) return undefined;
  const unknown = namedBy(event).find(
    (id) => (reached.get(versionsOf(event.crmId, id)) ?? 0) === 0 && isNew(id, event, waitMs),
  );
  return unknown && beginningOf(versionsOf(event.crmId, unknown));
}

/** Returns which reasons to wait are gone. */
function reach(event: ArrivedEvent, reached: Map<string, number>): string[] {
  const places = placesOf(event);
  for (const { series, number } of places) reached.set(series, Math.max(number, reached.get(series) ?? 0));
  return [...places.map((place) => reasonOf(place)), beginningOf(versionsOf(event.crmId, event.subjectId))];
}

function reasonOf({ series, number }: Place): string {
  return `${number} in ${series}`;
}

function beginningOf(series: string): string {
  return `the beginning of ${series}`;
}

/** Whose first event comes before this one. */
function namedBy({ customerId, appointmentId, ordinal }: ArrivedEvent): string[] {
  return [customerId, ordinal === null ? appointmentId : null].filter((id) => id !== null);
}

/** The first event of what is older has come, or will not come. */
function isNew(id: string, event: ArrivedEvent, waitMs: number): boolean {
  const [named, happened] = [timeOf(id), timeOf(event.id)];
  return named !== undefined && happened !== undefined && named > happened - waitMs;
}

/** The time in a UUID of version 7, in milliseconds since 1970. */
function timeOf(id: string): number | undefined {
  return id[14] === '7' ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined;
}
