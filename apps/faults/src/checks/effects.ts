import { descriptionBy } from '../load/appointments.ts';
import { personMark } from '../load/customers.ts';
import type { Operation } from '../load/journal.ts';
import {
  type Appointment,
  type Change,
  type Customer,
  lastKnownState,
  type Participation,
  type Place,
  type Provider,
  type State,
  type User,
} from '../load/model.ts';
import type { Evidence, Lists, ShownAppointment, ShownParticipation, Violation } from './evidence.ts';
import { mayComeLate, wasOvertaken } from './late-attempts.ts';

const reservationMs = 180_000;
/** From when on it does not count whether a reservation is over. */
const slackMs = 15_000;

/**
 * I2: what was accepted is there, once, and as and where it was last changed; what was rejected is not; and nothing else
 * is there. I13: a participation is that of the person whom the reference named.
 */
export function checkEffects(evidence: Evidence): Violation[] {
  const unresolved = evidence.journal.operations.filter(({ outcome }) => outcome === undefined);
  return [
    ...unresolved.map(({ kind, answer }) => violation(`nobody knows what became of "${kind}": ${answer}`)),
    ...[...evidence.lists].flatMap(([provider, lists]) => checkProvider(provider, lists, evidence)),
    ...checkUsers(evidence),
  ];
}

function checkProvider(provider: Provider, lists: Lists, evidence: Evidence): Violation[] {
  const at = `of ${provider.tenant.crmId} ${provider.reference}`;
  return [
    ...compare(
      `customers ${at}`,
      customersExpected(provider),
      lists.customers.map(({ customerReference, userName }) => [customerReference, userName]),
    ),
    ...compare(
      `timeslots ${at}`,
      timeslotsExpected(provider),
      lists.timeslots.filter(({ fromHours }) => !fromHours).map(({ reference }) => [reference, '']),
    ),
    ...compare(
      `blocks ${at}`,
      blocksExpected(provider),
      lists.blocks.map(({ reference, resourceReference, start, end }) => [
        reference,
        `${resourceReference} ${Date.parse(start)} ${Date.parse(end)}`,
      ]),
    ),
    ...compare(
      `appointments ${at}`,
      appointmentsExpected(provider),
      placed(lists).map(({ reference, state, description }) => [reference, `${state} ${description}`]),
    ),
    ...checkSeries(provider, lists),
    ...checkParticipations(provider, lists, evidence),
  ];
}

/** Those of which the clients chose the reference. */
function placed({ appointments }: Lists): Lists['appointments'] {
  return appointments.filter(({ resourceReference }) => resourceReference === 'room@load');
}

function customersExpected({ customers }: Provider): Expected[] {
  return customers
    .filter(({ created, erased }) => isDone(created) && !isDone(erased))
    .map((customer) => [customer.reference, [nameOf(customer)]]);
}

/** The last one that was accepted. */
function nameOf({ names }: Customer | User): string {
  return names.findLast(({ operation }) => isDone(operation))!.name;
}

function timeslotsExpected({ timeslots }: Provider): Expected[] {
  return timeslots
    .filter(({ created, deleted }) => isDone(created) && !isDone(deleted))
    .map(({ reference }) => [reference, ['']]);
}

function blocksExpected({ blocks }: Provider): Expected[] {
  return blocks
    .filter(({ created, deleted }) => isDone(created) && !isDone(deleted))
    .map(({ reference, resource, startMs, endMs }) => [reference, [`${resource} ${startMs} ${endMs}`]]);
}

function appointmentsExpected({ appointments }: Provider): Expected[] {
  return appointments
    .filter(({ created, deleted }) => isDone(created) && !isDone(deleted))
    .map((appointment) => {
      const state = isDone(appointment.cancelled) ? 'CANCELLED' : 'ACTIVE';
      return [appointment.reference, descriptionsOf(appointment).map((description) => `${state} ${description}`)];
    });
}

/** Those that it may have. At first it is the name of the product. */
function descriptionsOf(appointment: Appointment): string[] {
  const updates = possibleUpdates(appointment);
  const descriptions = [
    `${appointment.provider.tenant.mark} product`,
    ...updates.map(({ operation }) => descriptionBy(operation)),
  ];
  return descriptions.slice(1 + updates.findLastIndex(({ operation }) => isDone(operation)));
}

/** The updates that took effect, and those that may have. */
export function possibleUpdates(appointment: Appointment): Appointment['updates'] {
  return appointment.updates.filter(({ operation }) => isDone(operation) || isUncertain(operation, appointment));
}

/**
 * An attempt that was not answered may have had its effect before somebody ended the appointment. Then the repetition
 * is rejected because of that, which tells nothing about the attempt (interface 1).
 */
export function isUncertain(
  { outcome, unknowns }: Operation,
  { cancelled, deleted }: Pick<Appointment, 'cancelled' | 'deleted'>,
): boolean {
  return outcome === 'failed' && unknowns > 0 && (cancelled !== undefined || deleted !== undefined);
}

function checkUsers({ users }: Evidence): Violation[] {
  const expected = [...users.keys()].filter(({ created, deleted }) => isDone(created) && !isDone(deleted));
  const shown = [...users].flatMap(([{ reference, tenant }, user]) =>
    user === undefined ? [] : [[`${reference} of ${tenant.crmId}`, user.lastName] as [string, string]],
  );
  return compare(
    'users',
    expected.map((user) => [`${user.reference} of ${user.tenant.crmId}`, [nameOf(user)]]),
    shown,
  );
}

function checkSeries({ series }: Provider, { appointments }: Lists): Violation[] {
  const shown = Map.groupBy(
    appointments.filter(({ resourceReference }) => resourceReference === 'hall@load'),
    ({ productReference }) => productReference,
  );
  return series.flatMap(({ product, count, created }) => {
    const members = shown.get(product) ?? [];
    const ids = new Set(members.map(({ seriesId }) => seriesId));
    const expected = isDone(created) ? count : 0;
    if (members.length === expected && ids.size === Math.min(expected, 1)) return [];
    return [
      violation(`the series of ${product} has ${members.length} appointments in ${ids.size} series, not ${expected}`),
    ];
  });
}

function checkParticipations(
  provider: Provider,
  { appointments, participations, timeslots }: Lists,
  { injected, journal }: Evidence,
): Violation[] {
  const inAppointments = new Map(
    appointments.flatMap((appointment) => appointment.participations.map((each) => [each.reference, each])),
  );
  const inList = new Map(participations.map((each) => [each.reference, each]));
  const known = new Set([
    ...provider.participations.map(({ reference }) => reference),
    ...provider.appointments.flatMap(({ embedded }) => embedded.map(({ reference }) => reference)),
  ]);
  return [
    ...(inList.size === participations.length ? [] : [violation('a participation is in the list twice')]),
    ...participations
      .filter((each) => !known.has(each.reference) && !isAnonymous(each))
      .map(({ reference }) => violation(`nobody has made the participation ${reference}`)),
    ...provider.participations.flatMap((participation) => {
      const expected = expectedStates(participation, journal.now());
      return [
        ...[inList, inAppointments].flatMap((shown) =>
          checkParticipation(participation, expected, shown.get(participation.reference)),
        ),
        ...checkLastChanges(participation, inList.get(participation.reference), { appointments, timeslots, injected }),
      ];
    }),
  ];
}

/** What is left of a booking that was over when its customer was erased (interface 4.4). */
function isAnonymous({ reference, name, customerReference, state }: ShownParticipation): boolean {
  return (
    reference.startsWith('anonymous-') &&
    name === '' &&
    customerReference === null &&
    (state === 'CANCELED' || state === 'DELETED')
  );
}

function checkParticipation(
  participation: Participation,
  expected: (State | undefined)[],
  shown: ShownParticipation | undefined,
): Violation[] {
  const { reference, appointment, customer, changes } = participation;
  const described = `${reference} (${changes.map(({ to, operation }) => `${to} ${operation.outcome} ${operation.answer} ${operation.unknowns}`).join(', ')})`;
  if (!expected.includes(shown?.state))
    return [
      violation(
        `${described} is ${shown?.state ?? 'absent'}, not ${expected.map((state) => state ?? 'absent').join(' or ')}`,
      ),
    ];
  if (shown === undefined) return [];
  const name = nameOf(customer);
  const mark = personMark(customer.provider.tenant.mark, customer.person);
  if (!shown.name.toLowerCase().includes(`${mark} `) || shown.customerReference !== customer.reference) {
    return [
      {
        invariant: 'I13',
        text: `${described} is of ${shown.name} (${shown.customerReference}), not of ${name} (${customer.reference})`,
      },
    ];
  }
  const isInPlace = appointment === undefined || shown.appointmentReference === appointment.reference;
  return shown.name === name && isInPlace
    ? []
    : [violation(`${described} is of ${shown.name} in ${shown.appointmentReference}, not of ${name}`)];
}

/** Where a booking of a slot is, and whether the person will be there. An attempt that came late may have changed both. */
function checkLastChanges(
  participation: Participation,
  shown: ShownParticipation | undefined,
  { appointments, timeslots, injected }: Pick<Lists, 'appointments' | 'timeslots'> & Pick<Evidence, 'injected'>,
): Violation[] {
  const { reference, changes } = participation;
  if (
    shown === undefined ||
    changes.some(({ operation }) => mayComeLate(operation, injected) || wasOvertaken(operation, changes))
  )
    return [];
  const appointment = appointments.find((each) => each.reference === shown.appointmentReference)!;
  const place = changes.findLast((change) => change.place !== undefined && isDone(change.operation))?.place;
  const isAttending = typeof shown.attendanceConfirmedAt === 'string';
  const described = `${reference} (${changes.map(({ to, operation }) => `${to} ${operation.outcome}`).join(', ')})`;
  return [
    ...(place === undefined || isAt(participation, place, { appointment, timeslots })
      ? []
      : [violation(`${described} is at ${appointment.start}, not at ${place.start || place.appointmentReference}`)]),
    ...(possibleAttendances(participation).has(isAttending)
      ? []
      : [violation(`the person of ${described} ${isAttending ? 'has' : 'has not'} said that they will be there`)]),
  ];
}

function isAt(
  { provider }: Participation,
  place: Place,
  { appointment, timeslots }: { appointment: ShownAppointment } & Pick<Lists, 'timeslots'>,
): boolean {
  if (place.timeslotReference === null) return appointment.reference === place.appointmentReference;
  const isNamed = ({ reference }: { reference: string }): boolean => reference === place.timeslotReference;
  const resource =
    provider.timeslots.find(isNamed)?.resource ??
    timeslots.find(isNamed)?.resourceReference ??
    // Opening hours have removed it, since nobody is in it any more.
    (appointment.state === 'CANCELLED' ? appointment.resourceReference : undefined);
  return Date.parse(appointment.start) === Date.parse(place.start) && appointment.resourceReference === resource;
}

/**
 * Somebody said that they will be there, unless the booking has been moved or its appointment changed since. Whoever is
 * cancelled when an appointment changes is not concerned.
 */
function possibleAttendances({ changes, appointment }: Participation): Set<boolean> {
  const last = changes.findLastIndex(({ to, operation }) => to === 'attending' && isPossible(operation));
  if (last < 0) return new Set([false]);
  const { operation: said } = changes[last]!;
  const moves = changes.slice(last).filter(({ to, operation }) => to === 'moved' && isDone(operation));
  const updates = (appointment === undefined ? [] : possibleUpdates(appointment)).filter(
    ({ operation }) => operation.endedMs > said.startedMs,
  );
  const ends = [
    ...changes.filter(({ to }) => to === 'CANCELED' || to === 'DELETED').map(({ operation }) => operation),
    ...(appointment?.cancelled === undefined ? [] : [appointment.cancelled]),
  ];
  const isRevoked =
    moves.some(({ byPerson }) => byPerson) ||
    updates.some(
      ({ operation }) =>
        isDone(operation) &&
        operation.startedMs > said.endedMs &&
        ends.every(({ startedMs }) => startedMs > operation.endedMs),
    );
  if (isRevoked) return new Set([false]);
  return new Set(isDone(said) && moves.length === 0 && updates.length === 0 ? [true] : [true, false]);
}

/** Undefined stands for a participation that is not there. */
function expectedStates({ appointment, customer, changes }: Participation, nowMs: number): (State | undefined)[] {
  const state = lastKnownState({ changes });
  const [{ to, operation: created }] = changes as [Change];
  if (isDone(customer.erased) || isDone(appointment?.deleted)) return [undefined];
  const isCancelled = isDone(appointment?.cancelled);
  if (!isDone(created))
    return isCancelled && isUncertain(created, appointment!) ? [undefined, 'CANCELED'] : [undefined];
  // It may have begun so after the cancellation (interface 4.3).
  if (isCancelled && state === 'DELETED' && to === 'DELETED' && created.endedMs > appointment!.cancelled!.startedMs)
    return ['DELETED', 'CANCELED'];
  const expected = isCancelled ? 'CANCELED' : state;
  if (state !== 'RESERVED') return [expected];
  const { startedMs, endedMs } = created;
  if (nowMs - endedMs < reservationMs - slackMs) return [expected];
  if (nowMs - startedMs > reservationMs + slackMs && !isCancelled) return [undefined];
  return [expected, undefined];
}

/** Something that is there, and the values that it may have. */
type Expected = [reference: string, values: string[]];

function compare(what: string, expected: Expected[], shown: [string, string][]): Violation[] {
  const wanted = new Map(expected);
  const there = new Map(shown);
  return [
    ...(there.size === shown.length ? [] : [violation(`some of the ${what} are there twice`)]),
    ...[...wanted]
      .filter(([reference, values]) => !values.some((value) => there.get(reference) === value))
      .map(([reference, values]) =>
        violation(
          `${what}: ${reference} is ${there.get(reference) ?? 'absent'}, not ${values.join(' or ') || 'there'}`,
        ),
      ),
    ...[...there.keys()]
      .filter((reference) => !wanted.has(reference))
      .map((reference) => violation(`${what}: ${reference} is there, but should not be`)),
  ];
}

export function isDone(operation: Operation | undefined): boolean {
  return operation?.outcome === 'ok';
}

/** Whether it took effect, or may have. */
export function isPossible({ outcome, unknowns }: Operation): boolean {
  return outcome === 'ok' || unknowns > 0;
}

function violation(text: string): Violation {
  return { invariant: 'I2', text };
}
