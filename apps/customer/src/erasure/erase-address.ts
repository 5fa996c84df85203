import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import { currentActor, isUuid } from '@scheduling/runtime';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { CustomerDependencies } from '../customer/customer.ts';
import type { CustomerSchema } from '../db/schema.ts';
import { confirmingServices, type ErasureRow } from './erasure.ts';

/** The erasure of an address, as callers see it. */
export interface AddressErasure {
  id: string;
  requestedAt: Date;
  completedAt: Date | null;
  /** The services that no longer have any data of the person. */
  confirmed: string[];
  /** The services that have not confirmed this yet. */
  awaiting: string[];
}

type ErasureKey = Pick<ErasureRow, 'crmId' | 'id'>;

/**
 * Requests the erasure of everybody with an address, in any of its forms (interface 4.8). The erasure driver does the
 * rest. While it searches for them, another request for the address in the same form, in any case, returns the same
 * erasure, which searches again: somebody new may be known with the address by now.
 */
export function eraseAddress(
  { database }: CustomerDependencies,
  { crmId, email }: { crmId: string; email: string },
): Promise<AddressErasure> {
  return transactOnce(database, crmId, {
    work: async (tx) => getAddressErasure(tx, { crmId, id: await request(tx, crmId, email) }),
    keep: ({ id }) => ({ resourceIds: [id], created: true }),
    replay: (tx, { resourceIds }) => getAddressErasure(tx, { crmId, id: resourceIds[0]! }),
  });
}

async function request(tx: Transaction<CustomerSchema>, crmId: string, email: string): Promise<string> {
  const { rows } = await sql<{ id: string }>`
    INSERT INTO erasure (crm_id, id, customer_id, subject, address, ignore_future_appointments, requested_by, published_at)
    SELECT ${crmId}, new.id, new.id, 'address', ${email}, true, ${currentActor()}, '-infinity' FROM (SELECT uuidv7() AS id) AS new
        ON CONFLICT (crm_id, (lower(normalize(address) COLLATE pg_c_utf8))) WHERE state = 'checking' AND address IS NOT NULL
        DO UPDATE SET published_at = '-infinity'
    RETURNING id`.execute(tx);
  return rows[0]!.id;
}

/** Rejects with `erasure.not_found`. */
export async function getAddressErasure(db: Kysely<CustomerSchema>, key: ErasureKey): Promise<AddressErasure> {
  if (!isUuid(key.id)) throw new DomainError('erasure.not_found');
  const row = await db
    .selectFrom('erasure')
    .select(['id', 'requestedAt', 'completedAt', 'state'])
    .select(
      sql<string[]>`ARRAY(
        SELECT DISTINCT service FROM unnest(${confirmingServices}::text[]) AS service, (
                 SELECT erasure.id
                  UNION ALL
                 SELECT part_id FROM erasure_part AS part WHERE part.crm_id = erasure.crm_id AND part.erasure_id = erasure.id) AS each (id)
         WHERE NOT EXISTS (
                 SELECT FROM erasure_confirmation AS confirmation
                  WHERE confirmation.crm_id = erasure.crm_id AND confirmation.erasure_id = each.id AND confirmation.service = service.service))`.as(
        'unconfirmed',
      ),
    )
    .where('crmId', '=', key.crmId)
    .where('id', '=', key.id)
    .where('subject', '=', 'address')
    .executeTakeFirst();
  if (row === undefined) throw new DomainError('erasure.not_found');
  const { id, requestedAt, completedAt, state, unconfirmed } = row;
  const isConfirmed = (service: string): boolean =>
    service === 'customer' ? state !== 'checking' : !unconfirmed.includes(service);
  const services = ['customer', ...confirmingServices];
  return {
    id,
    requestedAt,
    completedAt,
    confirmed: services.filter(isConfirmed),
    awaiting: services.filter((service) => !isConfirmed(service)),
  };
}

/** The address, while other services may need it. Rejects with `erasure.not_found` once the erasure is complete. */
export async function getErasureAddress(
  { database }: CustomerDependencies,
  { crmId, id }: ErasureKey,
): Promise<string> {
  const row = await database.kysely
    .selectFrom('erasure')
    .select('address')
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined || row.address === null) throw new DomainError('erasure.not_found');
  return row.address;
}
