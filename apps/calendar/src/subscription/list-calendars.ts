import type { ProviderKey } from '@scheduling/service';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type CalendarSubscriptionRow, selectCalendars } from './calendar-subscription.ts';

/** The subscriptions of a provider, in the order of their creation. Rejects with `provider.not_found`. */
export async function listCalendars(
  dependencies: CalendarDependencies,
  key: ProviderKey,
): Promise<CalendarSubscriptionRow[]> {
  const { id } = await requireProvider(dependencies, key);
  return selectCalendars(dependencies.database.kysely, key.crmId).where('providerId', '=', id).orderBy('id').execute();
}
