import { DomainError } from '@scheduling/errors';
import { sql } from 'kysely';
import { type CustomerReference, requireCustomer } from '../customer/customer-copy.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { requireInvitation } from './invitation.ts';

/**
 * Its link is dead at once; what was booked by it stays. Rejects with `provider.not_found`, `customer.not_found` or
 * `invitation.not_found`.
 */
export async function deleteInvitation(
  dependencies: CalendarDependencies,
  { invitationId, ...key }: CustomerReference & { invitationId: string },
): Promise<void> {
  const { crmId } = key;
  await requireProvider(dependencies, key);
  const { id: customerId } = await requireCustomer(dependencies, key);
  await dependencies.database.transaction(async (tx) => {
    const { id } = await requireInvitation(tx, crmId, invitationId);
    // As whoever books by it (book-by-invitation.sql).
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`page invitation ${id}`}, 0))`.execute(tx);
    const { numDeletedRows } = await tx
      .deleteFrom('invitation')
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .where('customerId', '=', customerId)
      .executeTakeFirst();
    if (numDeletedRows === 0n) throw new DomainError('invitation.not_found');
  });
}
