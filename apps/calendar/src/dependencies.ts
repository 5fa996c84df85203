import type { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { CalendarSchema } from './db/schema.ts';
import type { BookingMetrics } from './participation/booking-metrics.ts';
import type { RememberedProviders } from './provider/remembered-providers.ts';
import type { SlotMetrics } from './slot/slot-metrics.ts';

/** The dependencies of the use cases. */
export interface CalendarDependencies {
  database: Database<CalendarSchema>;
  /** Owns the providers. */
  identity: ClientOf<typeof IdentityServiceService>;
  providers: RememberedProviders;
  /** Owns the customers. */
  customers: ClientOf<typeof CustomerServiceService>;
  /** How long after its end an appointment becomes archived. */
  archiveAfterDays: number;
  bookings: BookingMetrics;
  slots: SlotMetrics;
  /** Called when reservations may have expired all at once. */
  onClockSet: () => void;
}
