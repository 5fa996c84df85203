import type { ParticipationServiceService } from '@scheduling/contracts/calendar/v1';
import type { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { NotificationSchema } from './db/schema.ts';

/** What the handlers of events work with. */
export interface NotificationDependencies {
  database: Database<NotificationSchema>;
  identity: ClientOf<typeof IdentityServiceService>;
  participations: ClientOf<typeof ParticipationServiceService>;
  erasures: ClientOf<typeof ErasureServiceService>;
  /** Sends for CRMs that have no address of their own. */
  senderAddress: string;
  /** The beginning of links. */
  publicUrl: string;
}
