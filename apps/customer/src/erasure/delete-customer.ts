import type { Crm } from '@scheduling/contracts/identity/v1';
import { GetErasureNoticeResponse } from '@scheduling/contracts/customer/v1';
import type { RemovedParticipation } from '@scheduling/contracts/calendar/v1';
import { CustomerChange } from '@scheduling/contracts/events/v1';
import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { forgetKeys } from '@scheduling/postgres';
import { currentActor } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import { customerChanged } from '../customer/customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from '../customer/customer.ts';
import type { CustomerReference } from '../customer/find-customer.ts';
import { getCustomer } from '../customer/get-customer.ts';
import type { CustomerSchema } from '../db/schema.ts';
import { type ErasureRow, noticeMinutes, requestOf } from './erasure.ts';
import { requestFromServices } from './request-from-services.ts';

/**
 * Deletes a customer (interface 4.4) in three steps, each of which can be repeated, so that {@link finishErasure} can
 * recover from a crash between them:
 *
 * 1. The intent is stored.
 * 2. Calendar decides, under the lock that bookings take too, and erases the person.
 * 3. The customer is deleted here and the other services are notified.
 *
 * Rejects with `customer.not_found`, or with `customer.has_future_appointments`, in which case nothing has changed.
 */
export async function deleteCustomer(
  dependencies: CustomerDependencies,
  { ignoreFutureAppointments, ...key }: CustomerReference & { ignoreFutureAppointments: boolean },
): Promise<void> {
  const customer = await getCustomer(dependencies, key);
  const erasure = await dependencies.database.kysely
    .insertInto('erasure')
    .values({ crmId: key.crmId, customerId: customer.id, ignoreFutureAppointments, requestedBy: currentActor() })
    .onConflict((conflict) =>
      // If it is part of the erasure of an address, it ignores them anyway.
      conflict
        .constraint('erasure_customer_key')
        .doUpdateSet({ ignoreFutureAppointments: sql`${ignoreFutureAppointments} OR ${isPart}` }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  await finishErasure(dependencies, erasure);
}

const isPart = sql<boolean>`EXISTS (SELECT FROM erasure_part AS part WHERE part.crm_id = erasure.crm_id AND part.part_id = erasure.id)`;

/** Steps 2 and 3, for an erasure of a customer or an embedded participant that is still `checking`. */
export async function finishErasure(dependencies: CustomerDependencies, erasure: ErasureRow): Promise<void> {
  const { crmId, customerId } = erasure;
  const { crm } = await dependencies.identity.getCrm({ crmId });
  const removed = await removeFromCalendar(dependencies, erasure);
  await dependencies.database.transaction(async (tx) => {
    const customer = await tx
      .deleteFrom('customer')
      .where('crmId', '=', crmId)
      .where('id', '=', customerId)
      .returningAll()
      .executeTakeFirst();
    // Embedded in an appointment, or a concurrent request deleted the customer first.
    if (customer === undefined) return requestFromServices(tx, erasure);
    await forgetKeys(tx, crmId, [customerId]);
    const notice = erasure.ignoreFutureAppointments ? noticeOf(customer, crm!, removed) : undefined;
    const requested = await requestErasure(tx, erasure, notice);
    await appendEvent(tx, events.customerChanged, customerChanged(customer, CustomerChange.DELETED));
    await appendEvent(tx, events.customerErasureRequested, requestOf(requested));
  });
}

async function removeFromCalendar(
  { database, removals }: CustomerDependencies,
  erasure: ErasureRow,
): Promise<RemovedParticipation[]> {
  const { crmId, customerId, ignoreFutureAppointments } = erasure;
  try {
    const { removed } = await removals.removeCustomer({ crmId, customerId, ignoreFutureAppointments });
    return removed;
  } catch (error) {
    if (error instanceof DomainError && error.category === 'conflict') await dropErasure(database.kysely, erasure);
    throw error;
  }
}

async function dropErasure(db: CustomerDependencies['database']['kysely'], erasure: ErasureRow): Promise<void> {
  await db
    .deleteFrom('erasure')
    .where('crmId', '=', erasure.crmId)
    .where('id', '=', erasure.id)
    .where('state', '=', 'checking')
    // Not if it has become part of the erasure of an address in the meantime.
    .where('ignoreFutureAppointments', '=', false)
    .execute();
}

/** A last mail is due when the CRM wants it, there is an address, and the person lost an appointment. */
function noticeOf(customer: CustomerRow, crm: Crm, removed: RemovedParticipation[]): Uint8Array | undefined {
  if (!crm.notifyOnCustomerDeletion || customer.email === null || removed.length === 0) return undefined;
  return GetErasureNoticeResponse.encode({
    providerId: customer.providerId,
    name: customer.userName,
    email: customer.email,
    language: customer.language ?? undefined,
    removed,
  }).finish();
}

/** If a rejected request has dropped the intent in the meantime, it is inserted again: the customer is deleted now. */
function requestErasure(
  tx: Transaction<CustomerSchema>,
  erasure: ErasureRow,
  notice: Uint8Array | undefined,
): Promise<ErasureRow> {
  const { crmId, customerId, ignoreFutureAppointments, requestedBy } = erasure;
  const requested = {
    state: 'requested' as const,
    notice: notice ?? null,
    requestedAt: sql<Date>`now()`,
    publishedAt: sql<Date>`now()`,
  };
  return tx
    .insertInto('erasure')
    .values({ crmId, id: erasure.id, customerId, ignoreFutureAppointments, requestedBy, ...requested })
    .onConflict((conflict) => conflict.constraint('erasure_customer_key').doUpdateSet(requested))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** When the notice of an erasure must be deleted, sent or not. */
export function noticeExpiry(erasure: ErasureRow): Date {
  return new Date(erasure.requestedAt.getTime() + noticeMinutes * 60_000);
}
