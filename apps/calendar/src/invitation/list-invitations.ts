import { type CustomerReference, requireCustomer } from '../customer/customer-copy.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type IssuedInvitation, selectInvitations, withToken } from './invitation.ts';

/**
 * The invitations of a customer that have not expired, in the order of their creation. Rejects with `provider.not_found`
 * or `customer.not_found`.
 */
export async function listInvitations(
  dependencies: CalendarDependencies,
  key: CustomerReference,
): Promise<IssuedInvitation[]> {
  await requireProvider(dependencies, key);
  const { id, email } = await requireCustomer(dependencies, key);
  const invitations = await selectInvitations(dependencies.database.kysely, key.crmId)
    .where('customerId', '=', id)
    .orderBy('id')
    .execute();
  return invitations.map((invitation) => withToken(dependencies, invitation, email));
}
