import { expect, it } from 'vitest';
import { describeStatement } from './statement-span.ts';

it.each([
  ['select "id" from "participation" where "crm_id" = $1 for update', 'SELECT', { table: 'participation' }],
  [
    '\n  INSERT INTO inbox (consumer, event_id)\n  SELECT $1, event_id FROM unnest($2) AS event_id',
    'INSERT',
    { table: 'inbox' },
  ],
  ['update "counter" set "value" = $1', 'UPDATE', { table: 'counter' }],
  ['DELETE FROM idempotency_key USING unnest($1::uuid[]) AS resource (id)', 'DELETE', { table: 'idempotency_key' }],
  ['WITH due AS (SELECT id FROM mail LIMIT $1) UPDATE mail SET due_at = now() FROM due', 'WITH', { table: 'mail' }],
  ['select count(*) as "count" from "mail"', 'SELECT', { table: 'mail' }],
  ['SELECT "store_mail"($1::jsonb) AS answer', 'SELECT', { function: 'store_mail' }],
  ['SELECT * FROM "read_notes"($1::jsonb)', 'SELECT', { function: 'read_notes' }],
  [
    'SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS locked',
    'SELECT',
    { function: 'pg_try_advisory_xact_lock' },
  ],
  ['start transaction isolation level read committed', 'START TRANSACTION', {}],
  ['commit', 'COMMIT', {}],
])('describes %j by its operation and what it is about', (sql, operation, target) => {
  expect(describeStatement('calendar', sql)).toEqual({ namespace: 'calendar', operation, ...target });
});
