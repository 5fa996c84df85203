import type { CustomerRemovalServiceService } from '@scheduling/contracts/calendar/v1';
import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { Selectable } from 'kysely';
import type { CustomerSchema, CustomerTable } from '../db/schema.ts';

export type CustomerRow = Selectable<CustomerTable>;

/** What the use cases work with. */
export interface CustomerDependencies {
  database: Database<CustomerSchema>;
  /** Owns the providers that customers belong to. */
  identity: ClientOf<typeof IdentityServiceService>;
  /** Decides whether a customer may go, and holds the bookings. */
  removals: ClientOf<typeof CustomerRemovalServiceService>;
}
