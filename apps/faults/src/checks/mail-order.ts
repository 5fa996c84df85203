import type { ReceivedMail } from '@scheduling/testing/smtp';
import type { Operation } from '../load/journal.ts';
import type { Participation } from '../load/model.ts';
import type { Evidence, Violation } from './evidence.ts';
import { groupByToken, holderAs, holderOf } from './mails.ts';

/** I15: no mail about a participation arrives after one about a later change of it. */
export function checkMailOrder({ lists, system: { mail } }: Evidence): Violation[] {
  const mails = firstCopies(mail.mails);
  const byToken = groupByToken(mails);
  const participations = [...lists.keys()].flatMap((provider) => provider.participations);
  return [...participations.flatMap((participation) => checkChanges(participation, byToken)), ...checkCalendars(mails)];
}

/** I4 is about the others: one that was in transit while its process was stopped may arrive at any time. */
function firstCopies(mails: readonly ReceivedMail[]): ReceivedMail[] {
  return [...Map.groupBy(mails, ({ parsed }) => parsed.messageId ?? parsed).values()].map(([first]) => first!);
}

/** By the texts that clients gave with their changes. */
function checkChanges(participation: Participation, byToken: Map<string, ReceivedMail[]>): Violation[] {
  const steps = operationsOn(participation).map((operation) => ({
    operation,
    arrivals: (byToken.get(operation.token) ?? [])
      .filter((mail) => holderOf(mail) === holderAs(participation.customer))
      .map(({ arrivedMs }) => arrivedMs),
  }));
  return steps.flatMap((step) => {
    const overtaken = steps.filter(
      (later) =>
        step.operation.endedMs < later.operation.startedMs && Math.max(...step.arrivals) > Math.min(...later.arrivals),
    );
    return overtaken.map(({ operation }) =>
      violation(
        `the mail about ${step.operation.token} of ${participation.reference} came after the one about ${operation.token}`,
      ),
    );
  });
}

/**
 * With the cancellation of its appointment, unless the customer has another participation there: the mails about both
 * are alike.
 */
function operationsOn(participation: Participation): Operation[] {
  const { provider, customer, appointment, changes } = participation;
  const own = changes.map(({ operation }) => operation);
  const isOnly =
    provider.participations.filter((each) => each.appointment === appointment && each.customer === customer).length ===
    1;
  return appointment?.cancelled === undefined || !isOnly ? own : [...own, appointment.cancelled];
}

/** By the sequence numbers of the events in their calendar files. */
function checkCalendars(mails: readonly ReceivedMail[]): Violation[] {
  const last = new Map<string, number>();
  return mails.flatMap((mail) => {
    const { uid, sequence } = eventOf(mail) ?? {};
    if (uid === undefined || sequence === undefined) return [];
    const before = last.get(uid) ?? 0;
    last.set(uid, Math.max(before, sequence));
    return sequence < before
      ? [violation(`${mail.recipients.join()} got version ${sequence} of ${uid} after version ${before}`)]
      : [];
  });
}

function eventOf({ parsed }: ReceivedMail): { uid: string; sequence: number } | undefined {
  const file = parsed.attachments.find(
    ({ contentType }) => contentType === 'text/calendar' || contentType === 'application/ics',
  );
  const text = file?.content.toString('utf8').replaceAll(/\r\n[ \t]/g, '');
  const [uid, sequence] = [/^UID:(.+)$/m, /^SEQUENCE:(\d+)$/m].map((line) =>
    text === undefined ? undefined : line.exec(text)?.[1]?.trim(),
  );
  return uid === undefined || sequence === undefined ? undefined : { uid, sequence: Number(sequence) };
}

function violation(text: string): Violation {
  return { invariant: 'I15', text };
}
