import { DomainError } from '@scheduling/errors';
import { FatalError, type Logger } from '@scheduling/runtime';
import type { ClientBase } from 'pg';
import { requireOrder } from './migration-order.ts';
import type { MigrationSet } from './migration-set.ts';
import { describeBreaking, describeMissing, readSchemaState } from './schema-state.ts';

/** Admits connections once the schema is one that this code can use; from then on it stays open. */
export interface SchemaGate {
  readonly isOpen: boolean;
  /** Rejects if the schema is not one that this code can use. */
  examine: (client: ClientBase) => Promise<void>;
}

/**
 * While the schema is older than the code, it waits: nothing reads or writes before the migrations have run, so no
 * request and no event meets a half-migrated schema. A breaking migration of a newer version ends the process.
 *
 * @throws FatalError if the migrations are not in order
 */
export function createSchemaGate(sets: readonly MigrationSet[], logger: Logger): SchemaGate {
  requireOrder(sets);
  let open = false;
  let said: string | undefined;

  async function examine(client: ClientBase): Promise<void> {
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

  return {
    get isOpen() {
      return open;
    },
    examine,
  };
}

/** The database answers, but its schema is too old. To callers this is the same as an unavailable database. */
export class SchemaOutdated extends DomainError {
  constructor() {
    super('database.unavailable', { text: 'the database does not have the schema of this version yet' });
  }
}

/** Deliberately unhandled: it ends the process, wherever the connection was requested. */
function endProcess(error: FatalError): FatalError {
  setImmediate(() => {
    throw error;
  });
  return error;
}
