import { toTimeJson } from '@scheduling/runtime';
import type { Selectable } from 'kysely';
import type { EventTable } from '../db/schema.ts';
import type { WebhookDependencies } from '../dependencies.ts';

/** An event as its CRM sees it (interface 6.1), in the order of the fields. */
export interface EventJson {
  id: string;
  type: string;
  timestamp: string;
  actor: string;
  providerReference: string | null;
  data: {
    id: string;
    reference: string | null;
    appointmentId: string | null;
    appointmentReference: string | null;
    previousAppointmentId: string | null;
    customerReference: string | null;
    state: string | null;
    previousState: string | null;
    version: number | null;
    capacity: number | null;
    ignoreCapacity: boolean | null;
    start: string | null;
    expiresAt: string | null;
  };
}

export type StoredEvent = Omit<Selectable<EventTable>, 'sequence' | 'recordedAt' | 'cause'> & { occurredAt: Date };

/**
 * Events as their CRM sees them: with the references and times that the owners of the records know at this moment. One
 * call to each owner, so the events must belong to one CRM, and be at most 1,000. Rejects with `service.unavailable` if
 * an owner does not answer: a missing reference means that there is none.
 */
export async function describeEvents(
  dependencies: WebhookDependencies,
  crmId: string,
  events: StoredEvent[],
): Promise<EventJson[]> {
  if (events.length === 0) return [];
  const [providers, { participations, appointments }, customers, webhooks] = await Promise.all([
    dependencies.providers.findReferences(crmId, distinct(events.map((event) => event.providerId))),
    readCalendar(dependencies, crmId, events),
    readCustomers(dependencies, crmId, events),
    readWebhooks(dependencies, crmId, events),
  ]);
  return events.map((event) => {
    const participation = participations.get(event.subjectId);
    const appointment = appointments.get(appointmentIdOf(event) ?? '');
    const isAppointment = kindOf(event) === 'appointment';
    return {
      id: event.id,
      type: event.type,
      timestamp: event.occurredAt.toISOString(),
      actor: event.actor,
      providerReference: providers.get(event.providerId ?? '') ?? null,
      data: {
        id: event.subjectId,
        reference:
          (isAppointment
            ? appointment?.reference
            : (participation?.reference ?? customers.get(event.subjectId) ?? webhooks.get(event.subjectId))) ?? null,
        appointmentId: event.appointmentId,
        appointmentReference: (isAppointment ? undefined : appointment?.reference) ?? null,
        previousAppointmentId: event.previousAppointmentId,
        customerReference: customers.get(event.customerId ?? '') ?? null,
        state: event.state,
        previousState: event.previousState,
        version: event.version === 0 ? null : event.version,
        capacity: event.capacity,
        ignoreCapacity: event.exempt,
        start: appointment?.start ? toTimeJson(appointment.start) : null,
        // A later state has none.
        expiresAt:
          event.state === 'RESERVED' && participation?.reservedUntil ? toTimeJson(participation.reservedUntil) : null,
      },
    };
  });
}

async function readCalendar({ calendar }: WebhookDependencies, crmId: string, events: StoredEvent[]) {
  const participationIds = distinct(
    events.filter((event) => isAboutParticipation(event)).map((event) => event.subjectId),
  );
  const appointmentIds = distinct(events.map(appointmentIdOf));
  const isNeeded = participationIds.length > 0 || appointmentIds.length > 0;
  const { participations, appointments } = isNeeded
    ? await calendar.listReferences({ crmId, participationIds, appointmentIds })
    : { participations: [], appointments: [] };
  return { participations: byId(participations), appointments: byId(appointments) };
}

async function readCustomers(
  { customers }: WebhookDependencies,
  crmId: string,
  events: StoredEvent[],
): Promise<Map<string, string>> {
  const customerIds = distinct(
    events.map((event) => (kindOf(event) === 'customer' ? event.subjectId : event.customerId)),
  );
  if (customerIds.length === 0) return new Map();
  const answer = await customers.listCustomerReferences({ crmId, customerIds });
  return new Map(answer.customers.map(({ id, reference }) => [id, reference]));
}

async function readWebhooks(
  { database }: WebhookDependencies,
  crmId: string,
  events: StoredEvent[],
): Promise<Map<string, string>> {
  const ids = distinct(events.filter((event) => kindOf(event) === 'webhook').map((event) => event.subjectId));
  if (ids.length === 0) return new Map();
  const rows = await database.kysely
    .selectFrom('webhook')
    .select(['id', 'reference'])
    .where('crmId', '=', crmId)
    .where('id', 'in', ids)
    .execute();
  return new Map(rows.map(({ id, reference }) => [id, reference]));
}

/** The first part of the type. */
function kindOf({ type }: StoredEvent): string {
  return type.slice(0, type.indexOf('.'));
}

/** Mails are about participations, too. */
function isAboutParticipation(event: StoredEvent): boolean {
  return ['participation', 'mail'].includes(kindOf(event));
}

function appointmentIdOf(event: StoredEvent): string | null {
  return kindOf(event) === 'appointment' ? event.subjectId : event.appointmentId;
}

function distinct(ids: (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))];
}

function byId<Row extends { id: string }>(rows: Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.id, row]));
}
