import { CustomerChange } from '@scheduling/contracts/events/v1';
import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { emptyToNull, isUniqueViolation } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { customerChanged } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';

export interface CustomerUpdate {
  crmId: string;
  providerReference: string;
  customerReference: string;
  newCustomerReference?: string | undefined;
  userName?: string | undefined;
  email?: string | undefined;
  mobile?: string | undefined;
  note?: string | undefined;
  language?: string | undefined;
}

/** Changes the given fields (interface 4.4). Rejects with `customer.not_found` or `customer.reference_taken`. */
export async function updateCustomer({ database }: CustomerDependencies, request: CustomerUpdate): Promise<CustomerRow> {
  return database.transaction(async (tx) => {
    const customer = await writeChanges(tx, request);
    await appendEvent(tx, events.customerChanged, customerChanged(customer, CustomerChange.UPDATED));
    return customer;
  });
}

async function writeChanges(tx: Transaction<CustomerSchema>, request: CustomerUpdate): Promise<CustomerRow> {
  const { newCustomerReference: reference, userName, email, mobile, note, language } = request;
  const changes = { reference, userName, ...emptyToNull({ email, mobile, note, language }) };
  try {
    return await tx
      .updateTable('customer')
      .set({ ...changes, version: sql<number>`version + 1`, updatedAt: sql<Date>`now()` })
      .where('crmId', '=', request.crmId)
      .where('providerReference', '=', request.providerReference)
      .where('reference', '=', request.customerReference)
      .returningAll()
      .executeTakeFirstOrThrow(() => new DomainError('customer.not_found'));
  } catch (error) {
    throw isUniqueViolation(error, 'customer_reference_key') ? new DomainError('customer.reference_taken') : error;
  }
}
