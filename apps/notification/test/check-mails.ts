import type { ReceivedMail } from '@scheduling/testing';
import { Diary, type Effect, eventOf, periodOf } from './diary.ts';
import type { DueMail, Facts, Participation } from './random-changes.ts';
import { readMail } from './read-mail.ts';

/** A mail that arrived, with the due one that it is. */
export interface Arrival extends ReturnType<typeof readMail> {
  due: DueMail;
  requestId: string;
  arrivedMs: number;
  /** It has arrived before. */
  isCopy: boolean;
}

interface Assigned {
  /** In their order. */
  arrivals: Arrival[];
  /** Which due mails have not arrived, and which that arrived were not due. */
  missing: string[];
  surplus: string[];
}

/**
 * Recognises the due mails by their references, templates and messages, and the last ones to deleted customers, which
 * have no reference, by recipients and titles.
 */
export function assign(due: DueMail[], mails: readonly ReceivedMail[]): Assigned {
  const open = Map.groupBy(due, keyOfDue);
  const known = new Map<string, DueMail>();
  const surplus: string[] = [];
  const arrivals = mails.flatMap((mail) => {
    const { parsed, arrivedMs } = mail;
    const read = readMail(mail);
    const key = keyOf(
      read.template,
      read.reference ?? `${read.recipient} ${read.title}`,
      /message-\d+-\d+/.exec(read.text)?.[0],
    );
    const first = known.get(parsed.messageId!);
    const found = first ?? open.get(key)?.shift();
    if (found === undefined) surplus.push(key);
    else known.set(parsed.messageId!, found);
    return found === undefined
      ? []
      : [
          {
            ...read,
            due: found,
            requestId: parsed.headers.get('x-request-id') as string,
            arrivedMs,
            isCopy: first !== undefined,
          },
        ];
  });
  // What has not been sent by then is erased with its recipient.
  const missing = [...open].flatMap(([key, mailsLeft]) =>
    mailsLeft
      .filter(({ customer, template }) => !customer.isDeleted || template === 'removed-by-deletion')
      .map(() => key),
  );
  return { arrivals, missing, surplus };
}

function keyOfDue({ participation, customer, template, message, firstFacts }: DueMail): string {
  const title = participation.facts[firstFacts]!.title;
  return keyOf(
    template,
    template === 'removed-by-deletion' ? `${customer.addresses.at(-1)!.email} ${title}` : participation.reference,
    message?.replace('.', ''),
  );
}

function keyOf(template: string, about: string, message: string | undefined): string {
  return [template, about, message].filter(Boolean).join(' ');
}

/** Mails that arrived again, although it was recorded that they had arrived. */
export function findUnexplainedCopies(arrivals: Arrival[], unrecorded: ReadonlySet<string>): string[] {
  return arrivals.filter(({ isCopy, requestId }) => isCopy && !unrecorded.has(requestId)).map(describe);
}

/**
 * Mails to an address that was replaced before the change, with what was no longer true then, or that do the wrong
 * thing to the calendar.
 */
export function findWrongContents(arrivals: Arrival[]): string[] {
  return arrivals.flatMap((arrival) => {
    const { due, recipient, calendar } = arrival;
    const method = calendar === undefined ? undefined : /^METHOD:(\w+)/m.exec(calendar)?.[1];
    return [
      ...(addressesFor(arrival).includes(recipient) ? [] : [`${describe(arrival)} went to ${recipient}`]),
      ...(factsFor(arrival).some((facts) => isAbout(arrival, facts))
        ? []
        : [`${describe(arrival)} says what was not true`]),
      ...(method === due.calendar
        ? []
        : [`${describe(arrival)} has the calendar ${method} instead of ${due.calendar}`]),
    ];
  });
}

/** The one that the customer had at the change, and those that came after it. */
function addressesFor({ due: { customer, firstAddress }, arrivedMs }: Arrival): string[] {
  return customer.addresses.slice(firstAddress).flatMap(({ email, sinceMs }) => (sinceMs <= arrivedMs ? email : []));
}

/** What was true right after the change, and later. */
function factsFor({ due: { participation, firstFacts }, arrivedMs }: Arrival): Facts[] {
  return participation.facts.slice(firstFacts).filter(({ sinceMs }) => sinceMs <= arrivedMs);
}

function isAbout({ title, calendar }: Arrival, facts: Facts): boolean {
  if (calendar === undefined) return title === facts.title;
  return (
    title === facts.title && entryOf(eventOf(calendar).summary, periodOf(calendar)) === entryOf(facts.title, facts)
  );
}

function entryOf(title: string, { start, end }: { start: Date; end: Date }): string {
  return `${title} ${start.toISOString()} ${end.toISOString()}`;
}

/**
 * Mails that say that something was different before than what the mail had said that arrived before: somebody who reads
 * all of them would not know what they are about. A booking that was made without a mail was told of by the CRM.
 */
export function findWrongBefore(arrivals: Arrival[]): string[] {
  return [...Map.groupBy(arrivals, ({ due }) => due.participation).values()]
    .flatMap((about) => {
      const read = about.filter(({ isCopy }) => !isCopy);
      return read.filter(({ earlier }, index) => {
        const told = read[index - 1];
        return told !== undefined && earlier.some((value) => value !== told.title && value !== told.now);
      });
    })
    .map((arrival) => `${describe(arrival)} says that it was before: ${arrival.earlier.join('; ')}`);
}

/** Mails that came after one about a later change of the same participation. */
export function findOvertaken(arrivals: Arrival[]): string[] {
  return [...Map.groupBy(arrivals, ({ due }) => due.participation).values()].flatMap((about) => {
    const numbers = about.map(({ due }) => due.participation.mails.indexOf(due));
    return about.filter((_, index) => Math.max(...numbers.slice(0, index)) > numbers[index]!).map(describe);
  });
}

/**
 * Lets the calendar of each address receive its mails in the order of their arrival. Returns what it did otherwise than
 * it should, and what of it is wrong in the end.
 */
export function findWrongCalendars(arrivals: Arrival[]): string[] {
  const diaries = new Map<string, Diary>();
  const uids = new Map<string, Participation>();
  const wrong: string[] = [];
  for (const [index, arrival] of arrivals.entries()) {
    const { recipient, calendar, isCopy, due } = arrival;
    if (isCopy || calendar === undefined) continue;
    const diary = diaries.get(recipient) ?? new Diary();
    diaries.set(recipient, diary);
    const { uid } = eventOf(calendar);
    if ((uids.get(uid) ?? due.participation) !== due.participation)
      wrong.push(`${describe(arrival)} has the event of another booking`);
    uids.set(uid, due.participation);
    const effect = diary.receive(calendar);
    const expected = effectOf(
      arrival,
      arrivals.slice(0, index).filter((before) => before.due.participation === due.participation),
    );
    if (effect !== expected) wrong.push(`${describe(arrival)}: ${effect} instead of ${expected}`);
  }
  const byDue = new Map(arrivals.filter(({ isCopy }) => !isCopy).map((arrival) => [arrival.due, arrival]));
  const expected = new Set(uids.values())
    .values()
    .flatMap((participation) => entriesOf(participation, byDue))
    .toArray();
  const entries = [...diaries].flatMap(([address, diary]) =>
    diary.entries.map(({ uid, title, ...period }) => ({
      address,
      participation: uids.get(uid)!,
      entry: entryOf(title, period),
    })),
  );
  return [
    ...wrong,
    ...expected
      .filter((one) => !entries.some((entry) => isExpected(entry, one)))
      .map(({ address, participation }) => `${address} does not have the event of ${participation.reference}`),
    ...entries
      .filter((entry) => !expected.some((one) => isExpected(entry, one)))
      .map(({ address, participation, entry }) => `${address} has ${entry} of ${participation.reference}`),
  ];
}

/** @param before what has arrived about the same participation */
function effectOf({ recipient, due }: Arrival, before: Arrival[]): Effect {
  const atAddress = before.filter((arrival) => arrival.recipient === recipient && arrival.due.calendar !== undefined);
  const isThere = atAddress.at(-1)?.due.calendar === 'REQUEST';
  if (due.calendar === 'REQUEST') return isThere ? 'replaced' : 'added';
  if (isThere) return 'removed';
  // Interface 6.3: it was added to the calendar of an address that was replaced, or the mail with it was dropped
  // because the person was deleted.
  const isElsewhere = before.some((arrival) => arrival.due.calendar === 'REQUEST' && arrival.recipient !== recipient);
  const isDropped = due.template === 'removed-by-deletion' && due.calendar === 'CANCEL';
  return isElsewhere || isDropped ? 'removed nothing' : 'removed';
}

interface Entry {
  address: string;
  participation: Participation;
  /** One of these, as written by {@link entryOf}: a mail says what was true when it was written. */
  entries: string[];
}

/**
 * The events of a participation that should be in calendars in the end, by the mails that were due about it, in the
 * order of its changes.
 */
function entriesOf(participation: Participation, byDue: Map<DueMail, Arrival>): Entry[] {
  const entries = new Map<string, Entry>();
  for (const due of participation.mails) {
    const arrival = byDue.get(due);
    if (arrival === undefined || due.calendar === undefined) continue;
    const address = arrival.recipient;
    if (due.calendar === 'CANCEL') entries.delete(address);
    else
      entries.set(address, {
        address,
        participation,
        entries: factsFor(arrival).map((facts) => entryOf(facts.title, facts)),
      });
  }
  return [...entries.values()];
}

function isExpected(
  found: { address: string; participation: Participation; entry: string },
  { address, participation, entries }: Entry,
): boolean {
  return found.address === address && found.participation === participation && entries.includes(found.entry);
}

function describe({ due, recipient }: Arrival): string {
  return `${keyOfDue(due)} to ${recipient}`;
}
