import {
  AppointmentState as AppointmentStateMessage,
  ParticipationState as ParticipationStateMessage,
} from '@scheduling/contracts/calendar/v1';
import {
  AppointmentChange,
  ParticipationChangeCause,
  type ParticipationChanged,
} from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { appendEvent, appendEventsWithIds } from '@scheduling/messaging';
import { currentActor } from '@scheduling/runtime';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { AppointmentTable, CalendarSchema, ParticipationTable } from '../db/schema.ts';

/**
 * The events of a participation about which there are mails: that of a change, and the one before it; and whether its
 * person was invited by one of them.
 */
export interface MailEvents {
  mailEventId: string | null;
  previousMailEventId: string | null;
  invited: boolean;
}

/** For the column `mailEventId`, in an update about which there is a mail. */
export const newMailEvent = sql<string>`uuidv7()`;

interface Change extends Omit<
  ParticipationChanged,
  'actor' | 'notify' | 'previousMailEventId' | 'neverInvited' | 'ordinal' | 'previousAppointmentId' | 'previousOrdinal'
> {
  /** Undefined if there is no mail about it. */
  mail: MailEvents | undefined;
}

/**
 * Records changes of participations in their transaction, each on the subject for changes with or without a mail. The
 * transaction has locked their appointments, which still exist.
 */
export async function appendChanges(tx: Transaction<CalendarSchema>, changes: Change[]): Promise<void> {
  const actor = currentActor();
  const counts = await countEvents(
    tx,
    changes.map(({ crmId, appointmentId }) => ({ crmId, appointmentId })),
  );
  const facts = changes.map((change, index) => ({
    ...change,
    actor,
    ordinal: counts[index]!.ordinal,
    previousOrdinal: 0,
  }));
  const withMails = facts.flatMap(({ mail, ...fact }) =>
    mail === undefined ? [] : [{ id: mail.mailEventId!, data: { ...fact, notify: true, ...mailFacts(mail) } }],
  );
  const silent = facts.flatMap(({ mail, ...fact }) =>
    mail === undefined ? [{ ...fact, notify: false, neverInvited: false }] : [],
  );
  await appendEventsWithIds(tx, events.participationChanged, withMails);
  await appendEvent(tx, events.participationChangedSilently, ...silent);
}

interface CountedEvent {
  /** Its number among the events about the appointment. */
  ordinal: number;
  /** That of the appointment. */
  capacity: number;
}

/** Counts events about appointments that the transaction has locked. */
async function countEvents(
  tx: Transaction<CalendarSchema>,
  about: { crmId: string; appointmentId: string }[],
): Promise<CountedEvent[]> {
  const [first] = about;
  if (first === undefined) return [];
  const { rows } = await sql<CountedEvent & { id: string }>`
    UPDATE appointment SET event_count = event_count + counted.events
      FROM (SELECT id, count(*)::integer AS events FROM unnest(${about.map(({ appointmentId }) => appointmentId)}::uuid[]) AS id GROUP BY id) AS counted
     WHERE appointment.crm_id = ${first.crmId} AND appointment.id = counted.id
    RETURNING appointment.id, old.event_count AS ordinal, capacity`.execute(tx);
  const counts = new Map(rows.map(({ id, ...count }) => [id, count]));
  return about.map(({ appointmentId }) => {
    const count = counts.get(appointmentId)!;
    count.ordinal += 1;
    return { ...count };
  });
}

function mailFacts({ previousMailEventId, invited }: MailEvents) {
  return { previousMailEventId: previousMailEventId ?? undefined, neverInvited: !invited };
}

type RemovedRow = Pick<
  Selectable<ParticipationTable>,
  'crmId' | 'id' | 'appointmentId' | 'customerId' | 'state' | 'version' | 'exempt'
>;

/**
 * Records that participations of a provider no longer exist. Nobody gets a mail: what a last mail says has an event of
 * its own.
 */
export async function appendRemovals(
  tx: Transaction<CalendarSchema>,
  providerId: string,
  rows: RemovedRow[],
): Promise<void> {
  const changes = rows.map(({ crmId, id: participationId, appointmentId, customerId, state, version, exempt }) => ({
    crmId,
    participationId,
    version: version + 1,
    exempt,
    cause: ParticipationChangeCause.REMOVED,
    fromState: ParticipationStateMessage[state],
    toState: ParticipationStateMessage.UNSPECIFIED,
    mail: undefined,
    appointmentId,
    providerId,
    customerId: customerId ?? undefined,
  }));
  await appendChanges(tx, changes);
}

type ChangedAppointment = Pick<Selectable<AppointmentTable>, 'crmId' | 'id' | 'providerId' | 'state' | 'revision'>;

/**
 * Records an update or a cancellation in its transaction, which has made it and locked the appointment. `present` is
 * the appointment before.
 */
export async function appendAppointmentChange(
  tx: Transaction<CalendarSchema>,
  change: AppointmentChange.UPDATED | AppointmentChange.CANCELLED,
  present: ChangedAppointment,
): Promise<void> {
  const [count] = await countEvents(tx, [{ crmId: present.crmId, appointmentId: present.id }]);
  await appendAppointmentEvents(tx, change, [{ ...present, ...count! }]);
}

/** Records that appointments were deleted; `rows` are these as they were at the end. */
export async function appendDeletions(
  tx: Transaction<CalendarSchema>,
  rows: (ChangedAppointment & Pick<Selectable<AppointmentTable>, 'capacity' | 'eventCount'>)[],
): Promise<void> {
  await appendAppointmentEvents(
    tx,
    AppointmentChange.DELETED,
    rows.map((row) => ({ ...row, ordinal: row.eventCount + 1 })),
  );
}

/** The number of events about an appointment that is inserted and recorded as created. */
export const countOfCreation = 1;

/** Records that appointments were created, with {@link countOfCreation}. */
export async function appendCreations(
  tx: Transaction<CalendarSchema>,
  rows: (Pick<ChangedAppointment, 'crmId' | 'id' | 'providerId'> & { capacity: number })[],
): Promise<void> {
  await appendAppointmentEvents(
    tx,
    AppointmentChange.CREATED,
    rows.map((row) => ({ ...row, ordinal: countOfCreation })),
  );
}

type KnownAppointmentChange = Exclude<
  AppointmentChange,
  AppointmentChange.UNSPECIFIED | AppointmentChange.UNRECOGNIZED
>;

/** @param rows the appointments before the change; new ones without state and revision */
async function appendAppointmentEvents(
  tx: Transaction<CalendarSchema>,
  change: KnownAppointmentChange,
  rows: (Pick<ChangedAppointment, 'crmId' | 'id' | 'providerId'> & Partial<ChangedAppointment> & CountedEvent)[],
): Promise<void> {
  const actor = currentActor();
  const facts = rows.map(({ crmId, id: appointmentId, providerId, state, revision = 0, ordinal, capacity }) => ({
    crmId,
    appointmentId,
    providerId,
    change,
    fromState: state === undefined ? AppointmentStateMessage.UNSPECIFIED : AppointmentStateMessage[state],
    version: nextVersion(state, revision),
    actor,
    ordinal,
    capacity,
  }));
  await appendEvent(tx, events.appointmentChanged, ...facts);
}

/**
 * Its events are counted: one for each revision, one if it was cancelled, after which it has no further revisions, and
 * this one.
 */
function nextVersion(state: ChangedAppointment['state'] | undefined, revision: number): number {
  return state === 'CANCELLED' ? revision + 2 : revision + 1;
}
