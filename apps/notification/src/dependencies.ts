import type { BookingPageServiceService, ParticipationServiceService } from '@scheduling/contracts/calendar/v1';
import type { CustomerServiceService, ErasureServiceService } from '@scheduling/contracts/customer/v1';
import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { NotificationSchema } from './db/schema.ts';
import type { FindSenders } from './senders.ts';

/** The dependencies of the event handlers and of the RPCs for the gateway. */
export interface NotificationDependencies {
  database: Database<NotificationSchema>;
  identity: ClientOf<typeof IdentityServiceService>;
  findSenders: FindSenders;
  participations: ClientOf<typeof ParticipationServiceService>;
  bookingPages: ClientOf<typeof BookingPageServiceService>;
  /** Owns the names and addresses that mails are sent to. */
  customers: ClientOf<typeof CustomerServiceService>;
  erasures: ClientOf<typeof ErasureServiceService>;
  /** The sender for CRMs without their own address. */
  senderAddress: string;
  /** The base URL of links to verify addresses. */
  publicUrl: string;
  /** The base URL of links to bookings, without a trailing slash. */
  pageUrl: string;
}
