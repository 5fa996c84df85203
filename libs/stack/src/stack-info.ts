import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseService, Service } from '@scheduling/runtime';
import type { Unit } from './service-table.ts';

/** The addresses of a running stack: for people, scripts, the admin command and the demo. */
export interface StackInfo {
  gateway: string;
  docs: string;
  /** Where persons open the links in their mails. */
  page: string;
  /** A booking page of the demo CRM; null if it was switched off, or could not be made. */
  bookingPage: string | null;
  /** The web page of the inbox; null if SMTP_URL was given. */
  inbox: string | null;
  smtp: string;
  /** With the doctor's user, which may only read. */
  nats: string;
  databases: Record<DatabaseService, string>;
  crmId: string;
  apiKey: string;
  /** gRPC addresses (`host:port`); for the gateway and page, those of their HTTP ports. */
  services: Record<Service, string>;
  /** gRPC addresses for operators. */
  admin: Record<DatabaseService, string>;
  /** Where each service serves `/livez`, `/readyz` and `/metrics`. */
  operations: Record<Service, string>;
  /** Null for an existing server that was given. */
  pids: Record<Unit, number | null>;
}

/** Where a running stack describes itself. */
export function stackFile(dataDir: string): string {
  return join(dataDir, 'stack.json');
}

/** The stack that runs on this data folder. Rejects with ENOENT if there is none. */
export async function readStackInfo(dataDir: string): Promise<StackInfo> {
  return JSON.parse(await readFile(stackFile(dataDir), 'utf8')) as StackInfo;
}
