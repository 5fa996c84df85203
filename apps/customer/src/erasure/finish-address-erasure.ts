import { GetErasureNoticeResponse } from '@scheduling/contracts/customer/v1';
import { isAddress } from '@scheduling/postgres';
import { lowestId } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CustomerDependencies } from '../customer/customer.ts';
import { decideCustomer } from '../customer/provisional-customer.ts';
import { finishErasure } from './delete-customer.ts';
import type { ErasureRow } from './erasure.ts';
import { requestFromServices } from './request-from-services.ts';

type AddressErasureRow = Pick<ErasureRow, 'crmId' | 'id' | 'address' | 'requestedBy'>;

/** Somebody who is known with the address. */
type Person = Pick<ErasureRow, 'customerId' | 'subject'>;

/**
 * The most customers, and the most participants, that are erased before the driver looks after other erasures: others
 * wait that long.
 */
const maxFound = 20;
/** The most notices that are read at once. */
const noticesPerBatch = 1_000;

/**
 * Erases everybody who is known with the address, as if each had been deleted with their future appointments, and what
 * somebody with it has not confirmed yet, and then notifies the other services, because a mail may wait for the address whose participation is gone. Whoever was deleted
 * before is still known with it until the last mail is sent: these erasures end on their own, and become parts of this
 * one. Each step can be repeated. Where there are too many for one call, the driver calls it again.
 */
export async function finishAddressErasure(
  dependencies: CustomerDependencies,
  erasure: AddressErasureRow,
): Promise<void> {
  const [customers, participants] = [
    await findCustomers(dependencies, erasure),
    await findParticipants(dependencies, erasure),
  ];
  for (const part of await addParts(dependencies, erasure, [...customers, ...participants]))
    await finishErasure(dependencies, part);
  // After the search for customers: one who was not found any more has a notice by now, unless it is sent.
  await addPendingNotices(dependencies, erasure);
  await dependencies.removals.forgetAddress({ crmId: erasure.crmId, email: erasure.address! });
  const mayHaveMore = Math.max(customers.length, participants.length) >= maxFound;
  await (mayHaveMore
    ? searchAgain(dependencies, erasure)
    : dependencies.database.transaction((tx) => requestFromServices(tx, erasure)));
}

/** Provisional customers exist from now on, or never. */
async function findCustomers(
  dependencies: CustomerDependencies,
  { crmId, address }: AddressErasureRow,
): Promise<Person[]> {
  const rows = await dependencies.database.kysely
    .selectFrom('customer')
    .select(['id', 'provisionalUntil'])
    .where('crmId', '=', crmId)
    .where('email', 'is not', null)
    .where(isAddress(sql`email`, address!))
    .limit(maxFound)
    .execute();
  for (const { id, provisionalUntil } of rows)
    if (provisionalUntil !== null) await decideCustomer(dependencies, { crmId, id });
  return rows.map(({ id }) => ({ customerId: id, subject: 'customer' }));
}

async function findParticipants(
  { removals }: CustomerDependencies,
  { crmId, address }: AddressErasureRow,
): Promise<Person[]> {
  const { participationIds } = await removals.findEmbeddedParticipations({ crmId, email: address! });
  return participationIds.slice(0, maxFound).map((customerId) => ({ customerId, subject: 'participation' }));
}

/**
 * Whoever is found has data that must be erased, even if this had been done before a service was restored from a
 * backup.
 */
async function addParts(
  { database }: CustomerDependencies,
  { crmId, id: erasureId, requestedBy }: AddressErasureRow,
  persons: Person[],
): Promise<ErasureRow[]> {
  if (persons.length === 0) return [];
  return database.transaction(async (tx) => {
    const parts = await tx
      .insertInto('erasure')
      // In the same order everywhere, because concurrent requests lock them.
      .values(
        persons
          .toSorted((one, other) => (one.customerId < other.customerId ? -1 : 1))
          .map((person) => ({ ...person, crmId, ignoreFutureAppointments: true, requestedBy })),
      )
      .onConflict((conflict) =>
        conflict.constraint('erasure_customer_key').doUpdateSet({
          state: 'checking',
          ignoreFutureAppointments: true,
          publishedAt: sql<Date>`now()`,
          completedAt: null,
        }),
      )
      .returningAll()
      .execute();
    await tx
      .deleteFrom('erasureConfirmation')
      .where('crmId', '=', crmId)
      .where(sql<boolean>`erasure_id = ANY(${parts.map(({ id }) => id)}::uuid[])`)
      .execute();
    await tx
      .insertInto('erasurePart')
      .values(parts.map(({ id: partId }) => ({ crmId, erasureId, partId })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return parts;
  });
}

/** A notice is encoded, so the database cannot find those to an address. */
async function addPendingNotices(
  { database: { kysely } }: CustomerDependencies,
  { crmId, id: erasureId, address }: AddressErasureRow,
): Promise<void> {
  let lastId = lowestId;
  for (let found = noticesPerBatch; found === noticesPerBatch;) {
    const pending = await kysely
      .selectFrom('erasure')
      .select(['id', 'notice'])
      .where('crmId', '=', crmId)
      .where('notice', 'is not', null)
      .where('id', '>', lastId)
      .orderBy('id')
      .limit(noticesPerBatch)
      .execute();
    const recipients = pending.map(({ id, notice }) => ({ id, email: GetErasureNoticeResponse.decode(notice!).email }));
    await sql`
      INSERT INTO erasure_part (crm_id, erasure_id, part_id)
      SELECT ${crmId}, ${erasureId}, id FROM jsonb_to_recordset(${JSON.stringify(recipients)}) AS recipient (id uuid, email text)
       WHERE ${isAddress(sql`email`, address!)}
          ON CONFLICT DO NOTHING`.execute(kysely);
    found = pending.length;
    lastId = pending.at(-1)?.id ?? lastId;
  }
}

async function searchAgain({ database }: CustomerDependencies, { crmId, id }: AddressErasureRow): Promise<void> {
  await database.kysely
    .updateTable('erasure')
    .set({ publishedAt: sql<Date>`'-infinity'` })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .execute();
}
