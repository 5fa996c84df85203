import { CustomerChange } from '@scheduling/contracts/events/v1';
import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { emptyToNull, isUniqueViolation } from '@scheduling/postgres';
import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { customerChanged } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { type CustomerReference, getCustomerByReference } from './get-customer.ts';

export interface CustomerUpdate extends CustomerReference {
  newCustomerReference?: string | undefined;
  userName?: string | undefined;
  email?: string | undefined;
  mobile?: string | undefined;
  note?: string | undefined;
  language?: string | undefined;
}

/** Others may change the customer at the same time. */
const maxAttempts = 8;

/**
 * Changes the given fields (interface 4.4). Rejects with `customer.not_found`, `customer.reference_taken`, or `customer.busy` while others keep changing the
 * customer.
 */
export async function updateCustomer(dependencies: CustomerDependencies, request: CustomerUpdate): Promise<CustomerRow> {
  const { newCustomerReference, customerReference } = request;
  if (newCustomerReference !== undefined && newCustomerReference !== customerReference) return changeReference(dependencies, request);
  return dependencies.database.transaction(async (tx) => {
    const customer = await writeChanges(tx, request, { version: sql`version + 1` });
    if (customer === undefined) throw new DomainError('customer.not_found');
    return customer;
  });
}

/**
 * Calendar books by references, from copies. Before one changes, calendar forgets it and says with which version it may change; from then on whoever books by
 * it asks this service. Calendar accepts no copy with an older version, and every other change here, too, gets the next version: so while the customer still
 * has an older one, calendar cannot know the reference, and the change is safe. Afterwards calendar is told the new one. That may fail: it learns it with the
 * event, too, and asks until then.
 */
async function changeReference(dependencies: CustomerDependencies, request: CustomerUpdate): Promise<CustomerRow> {
  const { database, copies } = dependencies;
  const { crmId } = request;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const { id: customerId, version: present } = await getCustomerByReference(dependencies, request);
    await rejectTakenReference(dependencies, request);
    const { version } = await copies.forgetReference({ crmId, customerId, version: present + 1 });
    try {
      const changed = await database.transaction((tx) => writeChanges(tx, request, { version, customerId }));
      if (changed !== undefined) return changed;
    } finally {
      await copies.refreshCustomer({ crmId, customerId }).catch(() => undefined);
    }
  }
  throw new DomainError('customer.busy', { text: 'The customer is being changed by others.' });
}

/** Most of those that would be rejected are rejected before anything is forgotten; the unique key decides. */
async function rejectTakenReference({ database }: CustomerDependencies, { crmId, providerReference, newCustomerReference }: CustomerUpdate): Promise<void> {
  const other = await database.kysely
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', crmId)
    .where('providerReference', '=', providerReference)
    .where('reference', '=', newCustomerReference!)
    .executeTakeFirst();
  if (other !== undefined) throw new DomainError('customer.reference_taken');
}

interface Write {
  version: number | RawBuilder<number>;
  /** Nothing is written for another customer, or for one that has reached the version. */
  customerId?: string;
}

/** Undefined if there is no such customer. */
async function writeChanges(tx: Transaction<CustomerSchema>, request: CustomerUpdate, { version, customerId }: Write): Promise<CustomerRow | undefined> {
  const { newCustomerReference: reference, userName, email, mobile, note, language } = request;
  const changes = { reference, userName, ...emptyToNull({ email, mobile, note, language }) };
  const customer = await tx
    .updateTable('customer')
    .set({ ...changes, version, updatedAt: sql<Date>`now()` })
    .where('crmId', '=', request.crmId)
    .where('providerReference', '=', request.providerReference)
    .where('reference', '=', request.customerReference)
    .$if(customerId !== undefined, (query) => query.where('id', '=', customerId!).where('version', '<', version))
    .returningAll()
    .executeTakeFirst()
    .catch((error: unknown) => {
      throw isUniqueViolation(error, 'customer_reference_key') ? new DomainError('customer.reference_taken') : error;
    });
  if (customer !== undefined) await appendEvent(tx, events.customerChanged, customerChanged(customer, CustomerChange.UPDATED));
  return customer;
}
