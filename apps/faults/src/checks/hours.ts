import { isDeepStrictEqual } from 'node:util';
import { timeOf } from '../load/appointments.ts';
import { type Opening, openingsOf } from '../load/hours.ts';
import type { Hours, HoursWindow, Provider } from '../load/model.ts';
import { resources, resourcesWithHours } from '../load/slots.ts';
import { isDone, isPossible } from './effects.ts';
import type { Evidence, InjectedFault, Lists, ShownTimeslot, Violation } from './evidence.ts';
import { mayComeLate } from './late-attempts.ts';
import { type Bounds, describe, hadPlaceBefore, type Stay, staysOf } from './stays.ts';

/**
 * I17: a resource has the opening hours that were set last, and the timeslots that they make, each once. Nobody books in
 * a window that was closed before, whoever closes a window is told who has booked in it, and no booking loses its
 * timeslot.
 */
export function checkHours({ lists, injected, journal }: Evidence): Violation[] {
  const now = { startedMs: journal.now(), endedMs: journal.now() };
  return [...lists].flatMap(([provider, shown]) => {
    const stays = staysOf(provider, shown, injected);
    return [
      ...provider.hours
        .filter(({ operation }) => operation.outcome === 'failed')
        .map(({ operation }) => violation(`"${operation.kind}" was refused: ${operation.answer}`)),
      ...resourcesWithHours.flatMap((resource) => [
        ...checkContent(provider, resource, hoursInForce(provider, resource, now, injected), shown),
        ...checkTimeslots(provider, resource, shown),
      ]),
      ...checkPlaces(stays, injected),
      ...checkConflicts(provider, stays),
      ...checkKept(provider, shown),
    ];
  });
}

/** No timeslot of hours is there twice, not even for a moment. */
export function checkDoubles(timeslots: readonly ShownTimeslot[]): Violation[] {
  const byKey = Map.groupBy(
    timeslots.filter(({ fromHours }) => fromHours),
    (timeslot) => `${timeslot.resourceReference} ${keyOf(timeslot)}`,
  );
  return [...byKey]
    .filter(([, same]) => same.length > 1)
    .map(([key, same]) => violation(`${same.map(({ reference }) => reference).join(' and ')} are both ${key}`));
}

interface Period {
  startedMs: number;
  endedMs: number;
}

/**
 * The hours that a resource may have had in a period; undefined stands for none. Those of an operation count until
 * another one that began later has been accepted.
 */
function hoursInForce(
  { hours }: Provider,
  resource: string,
  { startedMs, endedMs }: Period,
  injected: readonly InjectedFault[],
): (Hours | undefined)[] {
  const own = hours.filter((change) => change.resources.includes(resource));
  const isReplaced = (sinceMs: number): boolean =>
    own.some(({ operation }) => isDone(operation) && operation.startedMs > sinceMs && operation.endedMs < startedMs);
  const possible = own.filter(
    ({ operation }) =>
      isPossible(operation) &&
      operation.startedMs < endedMs &&
      (mayComeLate(operation, injected) || !isReplaced(operation.endedMs)),
  );
  return [...(isReplaced(Number.NEGATIVE_INFINITY) ? [] : [undefined]), ...possible.map(({ content }) => content)];
}

function checkContent(
  { tenant }: Provider,
  resource: string,
  possible: (Hours | undefined)[],
  { hours }: Lists,
): Violation[] {
  const shown = hours.get(resource);
  if (possible.some((content) => isDeepStrictEqual(content, shown))) return [];
  return [
    violation(
      `${resource} of ${tenant.crmId} has the hours ${JSON.stringify(shown)}, not ${possible.map((content) => JSON.stringify(content)).join(' or ')}`,
    ),
  ];
}

/** Those of the hours that are shown. Others are hidden, and only there because somebody has booked in them. */
function checkTimeslots(provider: Provider, resource: string, { hours, timeslots }: Lists): Violation[] {
  const expected = new Set(openingsOf(hours.get(resource)).map(keyOfOpening));
  const own = timeslots.filter((timeslot) => timeslot.resourceReference === resource && timeslot.fromHours);
  const bookable = new Set(own.filter(({ state }) => state === 'BOOKABLE').map(keyOf));
  const hidden = own.filter(({ state }) => state !== 'BOOKABLE');
  const at = `of ${resource} of ${provider.tenant.crmId}`;
  return [
    ...checkDoubles(own),
    ...[...expected.difference(bookable)].map((key) => violation(`the hours ${at} have not made ${key}`)),
    ...[...bookable.difference(expected)].map((key) => violation(`the hours ${at} have made ${key}`)),
    ...hidden
      .filter((timeslot) => expected.has(keyOf(timeslot)) || !wasWanted(provider, timeslot))
      .map((timeslot) => violation(`the hours ${at} have hidden ${keyOf(timeslot)}`)),
  ];
}

/** Whether somebody may have booked in it. */
function wasWanted({ participations }: Provider, { start, end }: ShownTimeslot): boolean {
  return participations.some(({ changes }) =>
    changes.some(
      ({ place, operation }) =>
        place !== undefined &&
        isPossible(operation) &&
        Date.parse(place.start) >= Date.parse(start) &&
        Date.parse(place.start) < Date.parse(end),
    ),
  );
}

/** All that makes it the timeslot of a window. */
function keyOf({ start, end, ...content }: ShownTimeslot): string {
  return writeKey(Date.parse(start), Date.parse(end), content);
}

function keyOfOpening({ startMs, endMs, window }: Opening): string {
  return writeKey(startMs, endMs, window);
}

function writeKey(startMs: number, endMs: number, content: Omit<HoursWindow, 'from' | 'to'>): string {
  const { raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter } = content;
  const period = [startMs, endMs].map(timeOf).join(' to ');
  return [period, raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter].join(', ');
}

function checkPlaces(stays: readonly Stay[], injected: readonly InjectedFault[]): Violation[] {
  return stays
    .filter(({ change }) => change.place!.timeslotReference?.endsWith('@hours') === true)
    .filter((stay) => !hadPlaceBefore(stay))
    .filter((stay) => {
      const possible = hoursInForce(stay.participation.provider, stay.resource, stay.change.operation, injected);
      return !possible.some((content) => openingsOf(content).some((opening) => isStepOf(stay, opening)));
    })
    .map((stay) => violation(`${describe(stay)} is in no window that was open then`));
}

function isStepOf({ startMs, endMs }: Bounds, opening: Opening): boolean {
  const rasterMs = opening.window.raster * 60_000;
  return startMs >= opening.startMs && endMs <= opening.endMs && (startMs - opening.startMs) % rasterMs === 0;
}

/** What is booked while hours are set is either refused or named. */
function checkConflicts({ hours }: Provider, stays: readonly Stay[]): Violation[] {
  return hours.flatMap(({ operation, resources: set, content, conflicts }) => {
    if (conflicts === undefined || !isDone(operation)) return [];
    const open = merged(openingsOf(content));
    return stays
      .filter(
        ({ resource, change, untilMs, isCertain, appointment, startMs, endMs }) =>
          set.includes(resource) &&
          appointment !== undefined &&
          isCertain &&
          change.operation.endedMs < operation.startedMs &&
          untilMs > operation.endedMs &&
          !open.some((period) => period.startMs <= startMs && endMs <= period.endMs) &&
          !conflicts.appointmentReferences.includes(appointment),
      )
      .map((stay) => violation(`${describe(stay)} was not named when hours were set in which it is not`));
  });
}

/** Windows that overlap or follow each other directly are one. */
function merged(openings: readonly Opening[]): { startMs: number; endMs: number }[] {
  const periods: { startMs: number; endMs: number }[] = [];
  for (const { startMs, endMs } of openings.toSorted((a, b) => a.startMs - b.startMs)) {
    const last = periods.at(-1);
    if (last !== undefined && startMs <= last.endMs) last.endMs = Math.max(last.endMs, endMs);
    else periods.push({ startMs, endMs });
  }
  return periods;
}

/** Neither hours nor a deletion take a timeslot from those who have booked in it. */
function checkKept({ tenant }: Provider, { appointments, timeslots }: Lists): Violation[] {
  return appointments
    .filter(
      ({ state, resourceReference, participations }) =>
        state === 'ACTIVE' &&
        resources.some((resource) => resource === resourceReference) &&
        participations.some((each) => each.state === 'BOOKED' || each.state === 'REQUESTED'),
    )
    .filter(
      ({ resourceReference, start, end }) =>
        !timeslots.some(
          (timeslot) =>
            timeslot.resourceReference === resourceReference && timeslot.start <= start && end <= timeslot.end,
        ),
    )
    .map(({ reference, resourceReference, start }) =>
      violation(`${reference} of ${tenant.crmId}, at ${start} on ${resourceReference}, lies in no timeslot`),
    );
}

function violation(text: string): Violation {
  return { invariant: 'I17', text };
}
