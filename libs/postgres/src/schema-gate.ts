import { DomainError } from '@scheduling/errors';
import { FatalError, type Logger } from '@scheduling/runtime';
import type { PoolClient } from 'pg';
import type { MigrationSet } from './migration-set.ts';
import { describeBreaking, describeMissing, readSchemaState } from './schema-state.ts';

/** Lets connections through once the schema is one that this code can work on; from then on it stays open. */
export interface SchemaGate {
  /** A pool calls it with every new connection and gives the connection out when it was passed. */
  verify: (client: PoolClient, done: (error?: Error) => void) => void;
}

/**
 * A schema that is older than the code is waited for: nothing reads or writes before the migrations have run, so no request and no event meets
 * half a schema. One that a newer version has made breaking ends the process.
 */
export function createSchemaGate(sets: readonly MigrationSet[], logger: Logger): SchemaGate {
  let open = false;
  let said: string | undefined;

  async function examine(client: PoolClient): Promise<void> {
    if (open) return;
    const { missing, breaking } = await readSchemaState(client, sets);
    if (breaking.length > 0) throw endProcess(new FatalError(describeBreaking(breaking)));
    if (missing.length > 0) {
      const reason = describeMissing(missing);
      if (said !== reason) logger.warn(reason);
      said = reason;
      throw new SchemaOutdated();
    }
    if (said !== undefined) logger.info('the database schema is up to date');
    open = true;
  }

  return { verify: (client, done) => void examine(client).then(() => done(), done) };
}

/** The database answers, but with a schema that is too old. To callers it is the same as a database that is away. */
export class SchemaOutdated extends DomainError {
  constructor() {
    super('database.unavailable', { text: 'the database does not have the schema of this version yet' });
  }
}

/** Nobody can handle this one: it ends the process as any unhandled error does, wherever the connection was asked for. */
function endProcess(error: FatalError): FatalError {
  setImmediate(() => {
    throw error;
  });
  return error;
}
