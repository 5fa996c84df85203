import type { Database } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import type { IdentitySchema } from './db/schema.ts';

/** The dependencies of the use cases. */
export interface IdentityDependencies {
  database: Database<IdentitySchema>;
  logger: Logger;
}
