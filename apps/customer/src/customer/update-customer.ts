import { DomainError } from '@scheduling/errors';
import { emptyToNull, isUniqueViolation } from '@scheduling/postgres';
import { within } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { appendChanges } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import type { CustomerReference } from './find-customer.ts';
import { getCustomer } from './get-customer.ts';
import { decideCustomer } from './provisional-customer.ts';

export interface CustomerUpdate extends CustomerReference {
  newCustomerReference?: string | undefined;
  userName?: string | undefined;
  email?: string | undefined;
  mobile?: string | undefined;
  note?: string | undefined;
  language?: string | undefined;
  /** Null clears it. */
  metadata?: Record<string, string> | null | undefined;
}

/** Others may change the customer at the same time, but not in all of so many versions. */
const maxAttempts = 8;
/** The response does not wait any longer for calendar to know the new reference. */
const refreshMs = 300;

/**
 * Changes the given fields (interface 4.4). Rejects with `customer.not_found`, `customer.reference_taken`, or
 * `customer.busy` while others keep changing the customer.
 */
export async function updateCustomer(
  dependencies: CustomerDependencies,
  request: CustomerUpdate,
): Promise<CustomerRow> {
  const { newCustomerReference, customerReference } = request;
  if (newCustomerReference !== undefined && newCustomerReference !== customerReference)
    return changeReference(dependencies, request);
  const write = () => dependencies.database.transaction((tx) => writeChanges(tx, request));
  const changed = await write();
  if (changed !== undefined) return changed;
  // It may be provisional, and exist from now on.
  await getCustomer(dependencies, request);
  const settled = await write();
  if (settled === undefined) throw new DomainError('customer.not_found');
  return settled;
}

/**
 * Calendar books by references, from copies. Before one changes, calendar forgets it and says with which version it may
 * change; from then on whoever books by it asks this service. Calendar accepts no copy with an older version, and every
 * other change here, too, gets the next version: so while the customer still has an older one, calendar cannot know the
 * reference, and the change is safe. Each attempt leaves room for more changes of others. Afterwards calendar is told
 * the new reference. That may fail: it learns it with the event, too, and asks until then.
 */
async function changeReference(dependencies: CustomerDependencies, request: CustomerUpdate): Promise<CustomerRow> {
  const { database, copies } = dependencies;
  const { crmId } = request;
  let forgotten: string | undefined;
  try {
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const { id: customerId, version: present } = await getCustomer(dependencies, request);
      await rejectTakenReference(dependencies, request);
      forgotten = customerId;
      const { version } = await copies.forgetReference({ crmId, customerId, version: present + 2 ** attempt });
      const changed = await database
        .transaction((tx) => writeChanges(tx, request, { version, customerId }))
        .catch(undefinedIfTaken);
      if (changed !== undefined) return changed;
    }
    throw new DomainError('customer.busy', { text: 'The customer is being changed by others.' });
  } finally {
    if (forgotten !== undefined) await refreshCopy(dependencies, { crmId, customerId: forgotten });
  }
}

async function refreshCopy(
  { copies }: CustomerDependencies,
  customer: { crmId: string; customerId: string },
): Promise<void> {
  await within(copies.refreshCustomer(customer), refreshMs).catch(() => undefined);
}

/** The next attempt finds out by whom: if that is a provisional customer, the reference may be free. */
function undefinedIfTaken(error: unknown): undefined {
  if (error instanceof DomainError && error.code === 'customer.reference_taken') return undefined;
  throw error;
}

/** Most of those that would be rejected are rejected before anything is forgotten; the unique key decides. */
async function rejectTakenReference(
  dependencies: CustomerDependencies,
  { crmId, providerReference, newCustomerReference }: CustomerUpdate,
): Promise<void> {
  const other = await dependencies.database.kysely
    .selectFrom('customer')
    .select(['id', 'provisionalUntil'])
    .where('crmId', '=', crmId)
    .where('providerReference', '=', providerReference)
    .where('reference', '=', newCustomerReference!)
    .executeTakeFirst();
  if (other === undefined) return;
  if (other.provisionalUntil === null || (await decideCustomer(dependencies, { crmId, id: other.id })))
    throw new DomainError('customer.reference_taken');
}

interface Write {
  /** Absent: the next one. */
  version?: number;
  /** Nothing is written for another customer, or for one that has reached the version. */
  customerId?: string;
}

/** Undefined if there is no such customer. */
async function writeChanges(
  tx: Transaction<CustomerSchema>,
  request: CustomerUpdate,
  { version, customerId }: Write = {},
): Promise<CustomerRow | undefined> {
  const { newCustomerReference: reference, userName, email, mobile, note, language, metadata } = request;
  const changes = { reference, userName, ...emptyToNull({ email, mobile, note, language }), metadata };
  const changed = await tx
    .updateTable('customer')
    .set({ ...changes, version: version ?? sql<number>`version + 1`, updatedAt: sql<Date>`now()` })
    .where('crmId', '=', request.crmId)
    .where('providerReference', '=', request.providerReference)
    .where('reference', '=', request.customerReference)
    .where('provisionalUntil', 'is', null)
    .$if(version !== undefined, (query) => query.where('version', '<', version!).where('id', '=', customerId!))
    .returningAll()
    .returning(sql<number>`old.version`.as('oldVersion'))
    .executeTakeFirst()
    .catch((error: unknown) => {
      throw isUniqueViolation(error, 'customer_reference_key') ? new DomainError('customer.reference_taken') : error;
    });
  if (changed === undefined) return undefined;
  const { oldVersion, ...customer } = changed;
  await appendChanges(tx, customer, oldVersion);
  return customer;
}
