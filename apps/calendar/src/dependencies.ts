import type { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { ProviderCache } from '@scheduling/service';
import type { Selectable } from 'kysely';
import type { LRUCache } from 'lru-cache';
import type { CalendarSchema, ProviderTable } from './db/schema.ts';
import type { HoursMetrics } from './hours/hours-metrics.ts';
import type { BookingMetrics } from './participation/booking-metrics.ts';
import type { PageMetrics } from './page/page-metrics.ts';
import type { LinkTokens } from './person/link-token.ts';
import type { SlotMetrics } from './slot/slot-metrics.ts';

/** The dependencies of the use cases. */
export interface CalendarDependencies {
  database: Database<CalendarSchema>;
  /** Owns the providers. */
  identity: ClientOf<typeof IdentityServiceService>;
  /** As calendar's rows were when they were last read: see `withRememberedProvider`. */
  providers: ProviderCache<Selectable<ProviderTable>>;
  /** Owns the customers. */
  customers: ClientOf<typeof CustomerServiceService>;
  links: LinkTokens;
  /** Whose the provider is that has a page, by its id: it never changes. */
  pageTenants: LRUCache<string, string>;
  /** How long after its end an appointment becomes archived. */
  archiveAfterDays: number;
  bookings: BookingMetrics;
  slots: SlotMetrics;
  pages: PageMetrics;
  hoursMade: HoursMetrics;
  /** Called when reservations may have expired, and reminders and days of opening hours become due, all at once. */
  onClockSet: () => void;
}
