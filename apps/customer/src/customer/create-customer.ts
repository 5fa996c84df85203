import { CustomerChange } from '@scheduling/contracts/events/v1';
import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { outboxJson } from '@scheduling/messaging';
import { callOnce, emptyToNull } from '@scheduling/postgres';
import { randomUUIDv7 } from 'node:crypto';
import { customerChanged } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { requireCustomer } from './find-customer.ts';
import { withOpenProvider } from './with-open-provider.ts';
import { decideCustomer } from './provisional-customer.ts';

export interface NewCustomer {
  crmId: string;
  providerReference: string;
  customerReference: string;
  userName: string;
  email?: string | undefined;
  mobile?: string | undefined;
  note?: string | undefined;
  language?: string | undefined;
  metadata?: Record<string, string> | null | undefined;
}

/** Bookings with the same reference may have another customer prepared each time. */
const maxAttempts = 8;

/**
 * Creates a customer of a provider and the event about it in one round trip, or returns the existing one with this
 * reference, unchanged (interface 4.4). The unique key on the reference resolves concurrent requests. A provisional one
 * exists from now on, or never. Rejects with `provider.not_found`, or with `customer.busy` while bookings keep
 * preparing this reference.
 */
export async function createCustomer(
  dependencies: CustomerDependencies,
  request: NewCustomer,
): Promise<CreatedCustomer> {
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const answer = await tryToCreate(dependencies, request);
    if (!('provisionalId' in answer)) return answer;
    await decideCustomer(dependencies, { crmId: request.crmId, id: answer.provisionalId });
  }
  throw new DomainError('customer.busy');
}

/** A provisional customer has the reference. */
interface Obstacle {
  provisionalId: string;
}

async function tryToCreate(
  dependencies: CustomerDependencies,
  request: NewCustomer,
): Promise<CreatedCustomer | Obstacle> {
  return withOpenProvider(dependencies, request, (providerId) =>
    insertCustomer(dependencies, newRow(providerId, request)),
  );
}

async function insertCustomer(
  dependencies: CustomerDependencies,
  row: CustomerRow,
): Promise<CreatedCustomer | Obstacle> {
  const { crmId } = row;
  const event = outboxJson(events.customerChanged, customerChanged(row, CustomerChange.CREATED));
  const call = {
    name: 'create_customer',
    request: { ...row, event },
    locks: `${row.providerReference} ${row.reference}`,
  };
  const answer = await callOnce<InsertResult>(dependencies.database, call, (kept) => Promise.resolve(kept));
  if (answer.id === undefined) return answer;
  const { id, created } = answer;
  return {
    customer: id === row.id ? row : await requireCustomer(dependencies.database.kysely, { crmId, id }),
    created,
  };
}

interface CreatedCustomer {
  customer: CustomerRow;
  created: boolean;
}

/** See create-customer.sql. */
type InsertResult = { id: string; created: boolean } | (Obstacle & { id?: undefined });

export function newRow(providerId: string, request: NewCustomer): CustomerRow {
  const {
    crmId,
    providerReference,
    customerReference: reference,
    userName,
    email = '',
    mobile = '',
    note = '',
    language = '',
    metadata = null,
  } = request;
  return {
    crmId,
    id: randomUUIDv7(),
    providerId,
    providerReference,
    reference,
    userName,
    ...emptyToNull({ email, mobile, note, language }),
    metadata,
    version: 1,
  };
}
