import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseService, Service, Unit } from '@scheduling/stack';
import { UsageError } from './config.ts';
import { writeAtomically } from './data-folder.ts';

/** The addresses of a running stack: for people, scripts, the admin command and the demo. */
export interface StackInfo {
  gateway: string;
  docs: string;
  /** The web page of the inbox; null if SMTP_URL was given. */
  inbox: string | null;
  smtp: string;
  /** With the doctor's user, which may only read. */
  nats: string;
  databases: Record<DatabaseService, string>;
  crmId: string;
  apiKey: string;
  /** gRPC addresses (`host:port`); for the gateway, that of its HTTP port. */
  services: Record<Service, string>;
  /** gRPC addresses for operators. */
  admin: Record<DatabaseService, string>;
  /** Where each service serves `/livez`, `/readyz` and `/metrics`. */
  operations: Record<Service, string>;
  /** Null for an existing server that was given. */
  pids: Record<Unit, number | null>;
}

export async function writeStackFile(dataDir: string, info: StackInfo): Promise<void> {
  await writeAtomically(stackFile(dataDir), `${JSON.stringify(info, undefined, 2)}\n`);
}

/** The stack that runs on this data folder. Throws a UsageError with a remedy if there is none. */
export async function readStackFile(dataDir: string): Promise<StackInfo> {
  try {
    return JSON.parse(await readFile(stackFile(dataDir), 'utf8')) as StackInfo;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new UsageError(
      `No stack is running on ${dataDir}. Start one in another terminal: npm start (with the same SCHEDULING_DATA, if it is set).`,
    );
  }
}

export async function removeStackFile(dataDir: string): Promise<void> {
  await rm(stackFile(dataDir), { force: true });
}

function stackFile(dataDir: string): string {
  return join(dataDir, 'stack.json');
}
