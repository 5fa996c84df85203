import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { isUniqueViolation } from '@scheduling/postgres';
import { sql, type Transaction, type Updateable } from 'kysely';
import type { CustomerSchema, CustomerTable } from '../db/schema.ts';
import { type CustomerDependencies, type CustomerRow, emptyToNull } from './customer.ts';

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

/** Changes the fields that are given (interface 4.4). Rejects with `customer.not_found` or `customer.reference_taken`. */
export async function updateCustomer({ database }: CustomerDependencies, request: CustomerUpdate): Promise<CustomerRow> {
  return database.transaction(async (tx) => {
    const customer = await writeChanges(tx, request);
    await appendEvent(tx, events.customerChanged, { crmId: customer.crm_id, customerId: customer.id, version: customer.version });
    return customer;
  });
}

async function writeChanges(tx: Transaction<CustomerSchema>, request: CustomerUpdate): Promise<CustomerRow> {
  try {
    return await tx
      .updateTable('customer')
      .set({ ...changes(request), version: sql<number>`version + 1`, updated_at: sql<Date>`now()` })
      .where('crm_id', '=', request.crmId)
      .where('provider_reference', '=', request.providerReference)
      .where('reference', '=', request.customerReference)
      .returningAll()
      .executeTakeFirstOrThrow(() => new DomainError('customer.not_found'));
  } catch (error) {
    throw isUniqueViolation(error, 'customer_reference_key') ? new DomainError('customer.reference_taken') : error;
  }
}

function changes(request: CustomerUpdate): Updateable<CustomerTable> {
  return {
    ...(request.newCustomerReference !== undefined && { reference: request.newCustomerReference }),
    ...(request.userName !== undefined && { user_name: request.userName }),
    ...(request.email !== undefined && { email: emptyToNull(request.email) }),
    ...(request.mobile !== undefined && { mobile: emptyToNull(request.mobile) }),
    ...(request.note !== undefined && { note: emptyToNull(request.note) }),
    ...(request.language !== undefined && { language: emptyToNull(request.language) }),
  };
}
