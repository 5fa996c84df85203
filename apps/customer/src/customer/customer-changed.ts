import { CustomerChange, type CustomerChanged } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { currentActor } from '@scheduling/runtime';
import type { Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import type { CustomerRow } from './customer.ts';

/** The event about a change; `row` is the customer after it, or before a deletion, which counts as a version, too. */
export function customerChanged(
  { crmId, id: customerId, providerId, version }: CustomerRow,
  change: CustomerChange,
): CustomerChanged {
  return {
    crmId,
    customerId,
    providerId,
    version: change === CustomerChange.DELETED ? version + 1 : version,
    change,
    actor: currentActor(),
  };
}

/**
 * An event for each version after the old one, because the feed puts the events of a customer in the order of their
 * versions and waits for those that are missing.
 */
export function appendChanges(tx: Transaction<CustomerSchema>, row: CustomerRow, oldVersion: number): Promise<void> {
  const versions = Array.from({ length: row.version - oldVersion }, (_, index) => oldVersion + 1 + index);
  return appendEvent(
    tx,
    events.customerChanged,
    ...versions.map((version) => customerChanged({ ...row, version }, CustomerChange.UPDATED)),
  );
}
