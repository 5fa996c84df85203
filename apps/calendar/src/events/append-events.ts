import { AppointmentState as AppointmentStateMessage, ParticipationState as ParticipationStateMessage } from '@scheduling/contracts/calendar/v1';
import { AppointmentChange, ParticipationChangeCause, type ParticipationChanged } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { appendEvent, appendEventsWithIds, originJson } from '@scheduling/messaging';
import { currentActor } from '@scheduling/runtime';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { AppointmentTable, CalendarSchema, ParticipationTable } from '../db/schema.ts';

/** The events of a participation about which there are mails: that of a change, and the one before it; and whether its person was invited by one of them. */
export interface MailEvents {
  mailEventId: string | null;
  previousMailEventId: string | null;
  invited: boolean;
}

/** For the column `mailEventId`, in an update about which there is a mail. */
export const newMailEvent = sql<string>`uuidv7()`;

interface Change extends Omit<ParticipationChanged, 'actor' | 'notify' | 'previousMailEventId' | 'neverInvited'> {
  /** Undefined if there is no mail about it. */
  mail: MailEvents | undefined;
}

/** Records changes of participations in their transaction, each on the subject for changes with or without a mail. */
export async function appendChanges(tx: Transaction<CalendarSchema>, changes: Change[]): Promise<void> {
  const actor = currentActor();
  const withMails = changes.flatMap(({ mail, ...change }) => (mail === undefined ? [] : [{ id: mail.mailEventId!, data: { ...change, actor, notify: true, ...mailFacts(mail) } }]));
  const silent = changes.flatMap(({ mail, ...change }) => (mail === undefined ? [{ ...change, actor, notify: false, neverInvited: false }] : []));
  await appendEventsWithIds(tx, events.participationChanged, withMails);
  await appendEvent(tx, events.participationChangedSilently, ...silent);
}

function mailFacts({ previousMailEventId, invited }: MailEvents) {
  return { previousMailEventId: previousMailEventId ?? undefined, neverInvited: !invited };
}

/** For a SQL function that changes a participation and records it at once; see append-events.sql. */
export function changeOrigin(notify: boolean) {
  return { ...originJson(), subject: (notify ? events.participationChanged : events.participationChangedSilently).subject };
}

type RemovedRow = Pick<Selectable<ParticipationTable>, 'crmId' | 'id' | 'appointmentId' | 'customerId' | 'state' | 'version'>;

/** Records that participations of a provider no longer exist. Nobody gets a mail: what a last mail says has an event of its own. */
export async function appendRemovals(tx: Transaction<CalendarSchema>, providerId: string, rows: RemovedRow[]): Promise<void> {
  const changes = rows.map(({ crmId, id: participationId, appointmentId, customerId, state, version }) => ({
    crmId,
    participationId,
    version: version + 1,
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

type KnownAppointmentChange = Exclude<AppointmentChange, AppointmentChange.UNSPECIFIED | AppointmentChange.UNRECOGNIZED>;

/** Records changes of appointments; `rows` are these before the change, except for new ones. */
export async function appendAppointmentChanges(tx: Transaction<CalendarSchema>, change: KnownAppointmentChange, rows: ChangedAppointment[]): Promise<void> {
  const actor = currentActor();
  const isNew = change === AppointmentChange.CREATED;
  const facts = rows.map(({ crmId, id: appointmentId, providerId, state, revision }) => ({
    crmId,
    appointmentId,
    providerId,
    change,
    fromState: isNew ? AppointmentStateMessage.UNSPECIFIED : AppointmentStateMessage[state],
    version: isNew ? revision : nextVersion(state, revision),
    actor,
  }));
  await appendEvent(tx, events.appointmentChanged, ...facts);
}

/** Its events are counted: one for each revision, one if it was cancelled, after which it has no further revisions, and this one. */
function nextVersion(state: ChangedAppointment['state'], revision: number): number {
  return state === 'ACTIVE' ? revision + 1 : revision + 2;
}
