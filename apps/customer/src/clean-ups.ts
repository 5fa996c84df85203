import { ago, type CleanUp } from '@scheduling/postgres';
import type { CustomerSchema } from './db/schema.ts';

const hourMs = 60 * 60 * 1_000;

/** What this service removes by itself. A process remembers the id of a provider for an hour. */
export const customerCleanUps: CleanUp<CustomerSchema>[] = [
  { table: 'closedProvider', column: 'closedAt', before: ago('24 hours'), everyMs: hourMs },
];
