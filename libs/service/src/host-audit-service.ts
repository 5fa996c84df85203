import { AuditServiceService } from '@scheduling/contracts/operations/v1';
import { listAuditEntries, type MessagingSchema } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { type HostedService, hostOperatorService } from '@scheduling/rpc';
import type { Kysely } from 'kysely';

/** Shows operators what was changed in this service by the RPCs for operators. */
export function hostAuditService<Schema extends MessagingSchema>({
  database,
}: {
  database: Database<Schema>;
}): HostedService {
  const db = database.kysely as unknown as Kysely<MessagingSchema>;
  return hostOperatorService(AuditServiceService, {
    listAuditEntries: async ({ since }) => ({ entries: await listAuditEntries(db, since) }),
  });
}
