import { DomainError } from '@scheduling/errors';
import { currentActor } from '@scheduling/runtime';
import { sql } from 'kysely';
import { type NewCustomer, newRow } from './create-customer.ts';
import { withOpenProvider } from './with-open-provider.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { decideCustomer } from './provisional-customer.ts';

/** How long a customer is provisional if nobody decides. A booking takes at most two seconds. */
export const provisionalSeconds = 60;
/** Others may prepare the reference with other content each time. */
const maxAttempts = 8;

export interface PreparedCustomer {
  customer: CustomerRow;
  /** It exists only if calendar books for it. */
  provisional: boolean;
}

/**
 * The customer with this reference, unchanged, or else a provisional one with this content. Bookings that bring the
 * same content share a provisional customer. Of one with other content calendar is asked, so that nobody is booked with
 * the content of another, rejected booking. Rejects with `provider.not_found`, or with `customer.busy` while others
 * keep preparing the reference.
 */
export async function prepareCustomer(
  dependencies: CustomerDependencies,
  request: NewCustomer,
): Promise<PreparedCustomer> {
  return withOpenProvider(dependencies, request, (providerId) => prepare(dependencies, newRow(providerId, request)));
}

async function prepare(dependencies: CustomerDependencies, row: CustomerRow): Promise<PreparedCustomer> {
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const prepared = await storeProvisional(dependencies, row);
    if (prepared !== undefined) return { customer: prepared, provisional: true };
    const present = await findPresent(dependencies, row);
    if (present?.provisionalUntil === null) return { customer: present, provisional: false };
    if (present !== undefined) await decideCustomer(dependencies, present);
  }
  throw new DomainError('customer.busy');
}

/** Undefined if somebody else has the reference. */
async function storeProvisional(
  { database }: CustomerDependencies,
  row: CustomerRow,
): Promise<CustomerRow | undefined> {
  const provisionalUntil = sql<Date>`now() + make_interval(secs => ${provisionalSeconds})`;
  return database.kysely
    .insertInto('customer')
    .values({ ...row, version: 0, provisionalUntil, preparedBy: currentActor() })
    .onConflict((conflict) =>
      conflict
        .constraint('customer_reference_key')
        .doUpdateSet({ provisionalUntil })
        .where('customer.provisionalUntil', 'is not', null)
        .where(
          sql<boolean>`(customer.user_name, customer.email, customer.mobile, customer.note, customer.language, customer.metadata)
            IS NOT DISTINCT FROM (excluded.user_name, excluded.email, excluded.mobile, excluded.note, excluded.language, excluded.metadata)`,
        ),
    )
    .returningAll()
    .executeTakeFirst();
}

function findPresent({ database }: CustomerDependencies, { crmId, providerReference, reference }: CustomerRow) {
  return database.kysely
    .selectFrom('customer')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('providerReference', '=', providerReference)
    .where('reference', '=', reference)
    .executeTakeFirst();
}
