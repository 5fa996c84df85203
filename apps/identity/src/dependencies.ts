import type { Database } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import type { IdentitySchema } from './db/schema.ts';

/** What the use cases work with. */
export interface IdentityDependencies {
  database: Database<IdentitySchema>;
  logger: Logger;
}
