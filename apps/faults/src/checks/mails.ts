import type { ReceivedMail } from '@scheduling/testing/smtp';
import { descriptionBy } from '../load/appointments.ts';
import type { Operation } from '../load/journal.ts';
import { personMark } from '../load/customers.ts';
import {
  type Appointment,
  type Change,
  type Customer,
  lastKnownState,
  type Participation,
  type Provider,
  type State,
  type User,
} from '../load/model.ts';
import { isDone, isPossible, isUncertain, possibleUpdates } from './effects.ts';
import type { Evidence, InjectedFault, Violation } from './evidence.ts';
import { mayComeLate, wasOvertaken } from './late-attempts.ts';
import { mayBeDropped, type WaitingMail } from './waiting-mails.ts';

/**
 * Whether interface 3.1 and 4.2 demand a mail: always, never, or only if something that happened at the same time came
 * later.
 */
type Demand = 'due' | 'forbidden' | 'either';

/** A copy that arrives this long before a fault may not be recorded any more when that begins. */
const beforeMs = 2_000;
/** What was under way during a fault is done this long after its end. */
const afterMs = 10_000;

/**
 * I3: each mail that is demanded has come, and no other. I4: each has come once, except where it could not be known
 * that it had come. I14: none went to an address that had been replaced before.
 */
export function checkMails(evidence: Evidence): Violation[] {
  const { mails } = evidence.system.mail;
  const byToken = groupByToken(mails);
  const providers = [...evidence.lists.keys()];
  const known = new Set(evidence.journal.operations.map(({ token }) => token));
  return [
    ...providers.flatMap((provider) =>
      provider.participations.flatMap((participation) => checkChanges(participation, byToken, evidence)),
    ),
    ...providers.flatMap((provider) =>
      provider.appointments.flatMap((appointment) => checkCancellation(provider, appointment, byToken)),
    ),
    ...providers.flatMap((provider) =>
      provider.appointments.flatMap((appointment) => checkUpdates(provider, appointment, mails)),
    ),
    ...providers.flatMap((provider) => checkRemovals(provider, mails)),
    ...providers.flatMap((provider) => checkAddresses(provider, evidence)),
    ...evidence.tenants.flatMap(({ users }) => users.flatMap((user) => checkVerification(user, mails))),
    ...[...byToken.keys()]
      .filter((token) => !known.has(token))
      .map((token): Violation => ({ invariant: 'I3', text: `a mail that belongs to no change: ${token}` })),
    ...checkCopies(evidence),
    ...checkMarks(evidence),
  ];
}

/** The mails with a text that an operation gave. */
export function groupByToken(mails: readonly ReceivedMail[]): Map<string, ReceivedMail[]> {
  const byToken = new Map<string, ReceivedMail[]>();
  for (const mail of mails) {
    const token = tokenOf(mail);
    if (token !== undefined) byToken.set(token, [...(byToken.get(token) ?? []), mail]);
  }
  return byToken;
}

/** Whose address a mail went to, whichever of them it was. */
export function holderOf({ recipients }: ReceivedMail): string {
  return recipients.join().replaceAll(/\.\d+@/g, '@');
}

export function holderAs({ provider, person }: Customer): string {
  const { mark } = provider.tenant;
  return `${personMark(mark, person)}@${mark.toLowerCase()}.example`;
}

/** In a message, or the id of a person's request: a form for a move has no message. */
function tokenOf({ parsed }: ReceivedMail): string | undefined {
  const [token] = /token-\d+-/.exec(parsed.text ?? '') ?? [];
  const requestId = parsed.headers.get('x-request-id');
  return token ?? (typeof requestId === 'string' && requestId.startsWith('token-') ? requestId : undefined);
}

function checkChanges(
  participation: Participation,
  byToken: Map<string, ReceivedMail[]>,
  evidence: Evidence,
): Violation[] {
  return participation.changes.flatMap((change, index) => {
    const mails = byToken.get(change.operation.token) ?? [];
    const before = stateBefore(participation, index);
    const demand = demandOf(participation, change, before);
    const described = `${participation.reference}, ${before ?? 'new'} to ${change.to}, ${change.operation.answer}`;
    if (
      demand === 'due' &&
      mails.length === 0 &&
      !mayBeDropped(change.operation, waitingMails(participation, byToken, evidence))
    )
      return [{ invariant: 'I3', text: `missing mail about ${described}` }];
    if (demand === 'forbidden' && mails.length > 0)
      return [{ invariant: 'I3', text: `forbidden mail about ${described}` }];
    const different = new Set(mails.map(({ parsed }) => parsed.messageId)).size;
    if (different > 1 && !mayComeLate(change.operation, evidence.injected))
      return [{ invariant: 'I3', text: `${different} mails about ${described}` }];
    const others = mails.filter((mail) => holderOf(mail) !== holderAs(participation.customer));
    return others.map(({ recipients }): Violation => ({
      invariant: 'I3',
      text: `the mail about ${described} went to ${recipients.join()}`,
    }));
  });
}

function demandOf(
  { appointment, customer, changes }: Participation,
  { to, notify, operation, byPerson = false }: Change,
  before: State | undefined,
): Demand {
  if (!notify || !demandsMail(before, to)) return 'forbidden';
  if ((appointment !== undefined && isUncertain(operation, appointment)) || wasOvertaken(operation, changes))
    return 'either';
  if (!isDone(operation)) return 'forbidden';
  // Nobody is told of what no longer exists, and a cancellation may have come first.
  const isOver =
    customer.erased !== undefined ||
    appointment?.deleted !== undefined ||
    (appointment?.cancelled !== undefined && before !== undefined);
  // A CRM may move a booking to where it is; a page does not offer that.
  return isOver || (to === 'moved' && !byPerson) ? 'either' : 'due';
}

/** Interface 3.1, and 10.3 for moves to another slot. */
function demandsMail(before: State | undefined, to: Change['to']): boolean {
  switch (to) {
    case 'BOOKED':
      return before === undefined || before === 'RESERVED' || before === 'REQUESTED';
    case 'REQUESTED':
      return before === undefined;
    case 'CANCELED':
      return before === 'BOOKED' || before === 'REQUESTED';
    case 'moved':
      return true;
    case 'RESERVED':
    case 'DELETED':
    case 'attending':
      return false;
  }
}

/** All mails about a participation that there may have been, and that may have had to wait. */
function waitingMails(
  participation: Participation,
  byToken: Map<string, ReceivedMail[]>,
  { system, loadStartedMs }: Evidence,
): WaitingMail[] {
  const { appointment, changes, customer } = participation;
  const lastArrival = (mails: readonly ReceivedMail[]): number =>
    Math.max(...mails.map(({ arrivedMs }) => arrivedMs - loadStartedMs));
  const aboutChanges = changes.flatMap((change, index) => {
    const { operation, to, notify } = change;
    const before = stateBefore(participation, index);
    const mayWait = notify && demandsMail(before, to) && !isUrgent(change, before) && isPossible(operation);
    return mayWait ? [{ operation, arrivedMs: lastArrival(byToken.get(operation.token) ?? []) }] : [];
  });
  const updates = appointment === undefined ? [] : possibleUpdates(appointment).filter(({ notify }) => notify);
  const texts = updates.map(({ operation }) => descriptionBy(operation));
  const toHolder = system.mail.mails.filter((mail) => holderOf(mail) === holderAs(customer));
  // What such a mail says may be due to a later update.
  const aboutUpdates = updates.map(({ operation }, index) => ({
    operation,
    arrivedMs: lastArrival(toHolder.filter((mail) => texts.indexOf(updateOf(mail) ?? '') >= index)),
  }));
  return [...aboutChanges, ...aboutUpdates.filter(({ operation }) => mayTakePart(participation, operation))];
}

/** Whether somebody may have been REQUESTED or BOOKED when an appointment was updated. */
function mayTakePart({ changes }: Participation, { startedMs, endedMs }: Operation): boolean {
  if (changes.some(({ operation }) => operation.startedMs < endedMs && operation.endedMs > startedMs)) return true;
  const state = lastKnownState({ changes: changes.filter(({ operation }) => operation.endedMs <= startedMs) });
  return state === 'BOOKED' || state === 'REQUESTED';
}

/** Interface 6.3: these never wait. */
function isUrgent({ to, byPerson = false }: Change, before: State | undefined): boolean {
  return to === 'CANCELED' && !(byPerson && before === 'REQUESTED');
}

function stateBefore({ changes }: Participation, index: number): State | undefined {
  return lastKnownState({ changes: changes.slice(0, index) });
}

/** Everybody who was RESERVED, REQUESTED or BOOKED is told once that an appointment was cancelled. */
function checkCancellation(
  provider: Provider,
  appointment: Appointment,
  byToken: Map<string, ReceivedMail[]>,
): Violation[] {
  const { cancelled, embedded } = appointment;
  if (cancelled === undefined) return [];
  const told = new Set((byToken.get(cancelled.token) ?? []).map(holderOf));
  const due = new Set<string>();
  const possible = new Set<string>();
  for (const participation of provider.participations.filter((each) => each.appointment === appointment)) {
    const demand = isDone(cancelled)
      ? demandOfCancellation(participation, cancelled.startedMs, cancelled.endedMs)
      : 'forbidden';
    if (demand === 'due') due.add(holderAs(participation.customer));
    if (demand === 'either') possible.add(holderAs(participation.customer));
  }
  for (const { email } of isDone(cancelled) ? embedded : []) due.add(email);
  const missing = [...due.difference(told)].map(
    (email) => `${email} was not told that ${appointment.reference} was cancelled`,
  );
  const surplus = [...told.difference(due).difference(possible)].map(
    (email) => `${email} was told that ${appointment.reference} was cancelled`,
  );
  return [...missing, ...surplus].map((text): Violation => ({ invariant: 'I3', text }));
}

function demandOfCancellation({ changes, customer }: Participation, startedMs: number, endedMs: number): Demand {
  if (customer.erased !== undefined) return 'either';
  if (changes.some(({ operation }) => operation.startedMs < endedMs && operation.endedMs > startedMs)) return 'either';
  const state = lastKnownState({ changes: changes.filter(({ operation }) => operation.endedMs <= startedMs) });
  // A reservation may have expired.
  if (state === 'RESERVED') return 'either';
  return state === 'BOOKED' || state === 'REQUESTED' ? 'due' : 'forbidden';
}

/**
 * Everybody who is REQUESTED or BOOKED is told of an update. What the mail says is what the appointment is then, which
 * may be due to a later one.
 */
function checkUpdates(provider: Provider, appointment: Appointment, mails: readonly ReceivedMail[]): Violation[] {
  const { reference, updates, embedded, cancelled, deleted } = appointment;
  const participations = provider.participations.filter((each) => each.appointment === appointment);
  const people = new Set([
    ...embedded.map(({ email }) => email),
    ...participations.map(({ customer }) => holderAs(customer)),
  ]);
  const texts = updates.map(({ operation }) => descriptionBy(operation));
  const told = mails
    .map((mail) => ({ recipient: holderOf(mail), update: texts.indexOf(updateOf(mail) ?? '') }))
    .filter(({ update }) => update >= 0);
  const possible = possibleUpdates(appointment);
  const surplus = told.filter(
    ({ recipient, update }) => !people.has(recipient) || !possible.includes(updates[update]!),
  );
  const due =
    cancelled !== undefined || deleted !== undefined
      ? []
      : updates.flatMap(({ operation, notify }, update) =>
          notify && isDone(operation) ? [{ operation, update }] : [],
        );
  const missing = due.flatMap(({ operation, update }) => {
    const recipients = [
      ...embedded.map(({ email }) => email),
      ...participations.filter((each) => tookPart(each, operation)).map(({ customer }) => holderAs(customer)),
    ];
    return recipients
      .filter((recipient) => !told.some((each) => each.recipient === recipient && each.update >= update))
      .map((recipient) => ({ recipient, update }));
  });
  return [
    ...missing.map(({ recipient, update }): Violation => ({
      invariant: 'I3',
      text: `${recipient} got no mail "${texts[update]}", ${reference}`,
    })),
    ...surplus.map(({ recipient, update }): Violation => ({
      invariant: 'I3',
      text: `${recipient} got an unexpected mail "${texts[update]}", ${reference}`,
    })),
  ];
}

/** The description that a mail tells of, if it is about an update. */
function updateOf({ parsed }: ReceivedMail): string | undefined {
  return /^Your (?:appointment|request) has changed\n[^]*?\n {2}(description-\d+-)/.exec(parsed.text ?? '')?.[1];
}

/** Certainly, all the time since the update, and before: nothing else happened to the participation. */
function tookPart({ changes, customer }: Participation, update: Operation): boolean {
  if (customer.erased !== undefined || changes.some(({ operation }) => operation.endedMs > update.startedMs))
    return false;
  const state = lastKnownState({ changes });
  return state === 'BOOKED' || state === 'REQUESTED';
}

/** A user who asked for it gets one mail, unless the user was deleted first. */
function checkVerification({ email, verification, deleted }: User, mails: readonly ReceivedMail[]): Violation[] {
  const count = new Set(
    mails.filter(({ recipients }) => recipients.includes(email)).map(({ parsed }) => parsed.messageId),
  ).size;
  const most = isDone(verification) ? 1 : 0;
  const least = deleted === undefined ? most : 0;
  return count >= least && count <= most
    ? []
    : [{ invariant: 'I3', text: `${email} got ${count} verification mails instead of ${least} to ${most}` }];
}

/**
 * Whoever was erased is told once of each booking or request that this ended. Among the mails to customers, only these
 * are neither about an operation with a message nor about an update.
 */
function checkRemovals({ customers, participations }: Provider, mails: readonly ReceivedMail[]): Violation[] {
  const withoutToken = Map.groupBy(
    mails.filter((mail) => tokenOf(mail) === undefined && updateOf(mail) === undefined),
    holderOf,
  );
  return customers.flatMap((customer) => {
    const count = new Set((withoutToken.get(holderAs(customer)) ?? []).map(({ parsed }) => parsed.messageId)).size;
    const own = participations.filter((participation) => participation.customer === customer);
    const least = isDone(customer.erased)
      ? own.filter((participation) => wasActive(participation, customer.erased!.startedMs)).length
      : 0;
    const most = isDone(customer.erased)
      ? own.filter((participation) => !wasOver(participation, customer.erased!.startedMs)).length
      : 0;
    return count >= least && count <= most
      ? []
      : [
          {
            invariant: 'I3',
            text: `${holderAs(customer)} got ${count} mails about the erasure instead of ${least} to ${most}`,
          },
        ];
  });
}

/** An address that was replaced before the change began that a mail is about got none of it. */
function checkAddresses({ customers }: Provider, { system: { mail }, journal }: Evidence): Violation[] {
  const operations = new Map(journal.operations.map((operation) => [operation.token, operation]));
  const byAddress = Map.groupBy(mail.mails, ({ recipients }) => recipients.join());
  return customers.flatMap(({ addresses, erased }) =>
    addresses.flatMap(({ email }, index) => {
      const replaced = addresses.slice(index + 1).find(({ operation }) => isDone(operation));
      const late = (byAddress.get(email) ?? []).filter((each) => {
        const cause = operations.get(tokenOf(each) ?? updateOf(each)?.replace('description', 'token') ?? '') ?? erased;
        return replaced !== undefined && cause !== undefined && replaced.operation.endedMs <= cause.startedMs;
      });
      return late.map(({ parsed }): Violation => ({
        invariant: 'I14',
        text: `${email} got "${parsed.subject}" after it had been replaced by ${replaced!.email}`,
      }));
    }),
  );
}

/** Certainly: it was BOOKED or REQUESTED, and nothing else happened to its appointment. */
function wasActive({ changes, appointment }: Participation, atMs: number): boolean {
  if (appointment?.cancelled !== undefined || appointment?.deleted !== undefined) return false;
  if (changes.some(({ operation }) => operation.endedMs > atMs)) return false;
  const state = lastKnownState({ changes });
  return state === 'BOOKED' || state === 'REQUESTED';
}

/** Certainly. */
function wasOver({ changes }: Participation, atMs: number): boolean {
  return changes.some(
    ({ to, operation }) => (to === 'CANCELED' || to === 'DELETED') && isDone(operation) && operation.endedMs <= atMs,
  );
}

function checkCopies({ system: { mail }, injected, loadStartedMs }: Evidence): Violation[] {
  const disturbances = injected.filter(({ parts }) =>
    parts.some((part) => part === 'notification' || part === 'postgres' || part === 'mail'),
  );
  const byId = Map.groupBy(mail.mails, ({ parsed }) => parsed.messageId ?? '');
  return [...byId].flatMap(([id, copies]) => {
    const unexplained = copies
      .slice(0, -1)
      .filter(({ arrivedMs }) => !wasDisturbed(arrivedMs - loadStartedMs, disturbances));
    return unexplained.map((): Violation => ({
      invariant: 'I4',
      text: `${id} arrived ${copies.length} times for no known reason: ${copies[0]!.parsed.subject}`,
    }));
  });
}

function wasDisturbed(atMs: number, disturbances: readonly InjectedFault[]): boolean {
  return disturbances.some(({ startedMs, endedMs }) => startedMs - beforeMs < atMs && atMs < endedMs + afterMs);
}

/** I9: a mail of one CRM contains nothing of the other. */
function checkMarks({ system: { mail }, tenants }: Evidence): Violation[] {
  return mail.mails
    .filter(
      ({ raw, parsed }) =>
        tenants.filter(({ mark }) => `${raw} ${parsed.text}`.toLowerCase().includes(mark.toLowerCase())).length !== 1,
    )
    .map(({ parsed }): Violation => ({
      invariant: 'I9',
      text: `a mail contains texts of both CRMs, or of neither: ${parsed.subject}`,
    }));
}
