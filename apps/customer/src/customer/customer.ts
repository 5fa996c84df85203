import type { CustomerCopyServiceService, CustomerRemovalServiceService } from '@scheduling/contracts/calendar/v1';
import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { ProviderNames } from '@scheduling/service';
import type { Selectable } from 'kysely';
import type { CustomerSchema, CustomerTable } from '../db/schema.ts';

/** A customer as callers see it. */
export type CustomerRow = Omit<
  Selectable<CustomerTable>,
  'createdAt' | 'updatedAt' | 'provisionalUntil' | 'preparedBy'
>;

/** The dependencies of the use cases. */
export interface CustomerDependencies {
  database: Database<CustomerSchema>;
  /** Owns the CRMs and the providers that customers belong to. */
  identity: ClientOf<typeof IdentityServiceService>;
  providers: ProviderNames;
  /** Decides whether a customer may be deleted, and owns the bookings. */
  removals: ClientOf<typeof CustomerRemovalServiceService>;
  /** Books by references, so it must know of a changed one, and whether a provisional customer exists. */
  copies: ClientOf<typeof CustomerCopyServiceService>;
}
