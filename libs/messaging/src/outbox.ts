import { type EventDefinition, eventOf } from '@scheduling/events';
import { withRows } from '@scheduling/postgres';
import { currentActor, currentContext, currentTraceparent, newRequestId } from '@scheduling/runtime';
import type { Insertable, Selectable, Transaction } from 'kysely';
import type { MessagingSchema, OutboxTable } from './schema.ts';

/** Records an event in the transaction of the change that it reports. The relay publishes it after the commit. */
export async function appendEvent<Schema extends MessagingSchema, Data>(
  tx: Transaction<Schema>,
  definition: EventDefinition<Data>,
  ...facts: Data[]
): Promise<void> {
  if (facts.length === 0) return;
  // Kysely's types do not know that a schema with more tables includes these.
  const messaging = tx as unknown as Transaction<MessagingSchema>;
  const rows = facts.map((data) => outboxRow(definition, data));
  await withRows(messaging.insertInto('outbox'), rows).execute();
}

/** An event for a SQL function that writes the change and its event at once: the columns of its row of the outbox. */
export function outboxJson<Data>(definition: EventDefinition<Data>, data: Data) {
  const { requestId, ...row } = outboxRow(definition, data);
  return { ...row, request_id: requestId };
}

/** Where the events of a SQL function come from that writes them itself. */
export function originJson() {
  return { actor: currentActor(), request_id: requestId(), traceparent: currentTraceparent() ?? null };
}

function outboxRow<Data>(definition: EventDefinition<Data>, data: Data): Insertable<OutboxTable> {
  return {
    subject: definition.subject,
    data: definition.toJson(data),
    requestId: requestId(),
    traceparent: currentTraceparent() ?? null,
  };
}

function requestId(): string {
  return currentContext()?.requestId ?? newRequestId();
}

/** The type of a row of the outbox, and its message. Throws if this version does not know the kind of event. */
export function encodeRow({
  subject,
  data,
  type,
  payload,
}: Pick<Selectable<OutboxTable>, 'subject' | 'data' | 'type' | 'payload'>): { type: string; payload: Uint8Array } {
  if (data === null) return { type: type!, payload: payload! };
  const definition = eventOf(subject);
  if (definition === undefined) throw new Error(`no event is published on ${subject}`);
  return { type: definition.type, payload: definition.encode(definition.fromJson(data)) };
}
