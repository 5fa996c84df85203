import { createDatabase, type Database } from '@scheduling/postgres';
import { createMetrics } from '@scheduling/runtime';
import { createMigratedDatabase, longTimeout, sumSamples, testLogger } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrateNotificationDatabase } from '../src/db/migrate.ts';
import type { NotificationSchema } from '../src/db/schema.ts';
import { registerMailMetrics } from '../src/mail/mail-metrics.ts';
import { storeMail } from '../src/mail/store-mail.ts';

const logger = testLogger('notification');
const metrics = createMetrics('notification');
const stack = new AsyncDisposableStack();
let database: Database<NotificationSchema>;
let count: ReturnType<typeof registerMailMetrics>;

beforeAll(async () => {
  const url = await createMigratedDatabase('notification', migrateNotificationDatabase);
  database = stack.use(createDatabase<NotificationSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
  count = registerMailMetrics(metrics, database);
});
afterAll(() => stack.disposeAsync());

const value = async (name: string, labels = {}): Promise<number | undefined> =>
  sumSamples(await metrics.metrics(), `scheduling_${name}`, labels);

async function store(
  crmId: string,
  dueSecondsAgo: number,
  { aboutId = randomUUID(), version = 1 } = {},
): Promise<void> {
  const eventId = randomUUID();
  const to = { name: 'Anna', address: 'anna@example.com' };
  const content = { from: to, to, language: 'en', subject: 'A mail', text: 'A text', html: '', calendars: [] };
  await database.transaction((tx) =>
    storeMail(tx, { crmId, eventId, aboutId, version, template: 'booking-confirmed', content, sandbox: false }),
  );
  const dueAt = new Date(Date.now() - dueSecondsAgo * 1_000);
  await database.kysely.updateTable('mail').set({ dueAt }).where('eventId', '=', eventId).execute();
}

it('reports how many mails are pending, and the most overdue across CRMs', async () => {
  expect([await value('mails_pending'), await value('mail_oldest_due_seconds')]).toEqual([0, 0]);
  await store('one', -600);
  expect([await value('mails_pending'), await value('mail_oldest_due_seconds')]).toEqual([1, 0]);
  for (const [crmId, dueSecondsAgo] of [
    ['two', 10],
    ['two', 300],
    ['three', 60],
  ] as const)
    await store(crmId, dueSecondsAgo);
  expect(await value('mails_pending')).toBe(4);
  expect(await value('mail_oldest_due_seconds')).toBeGreaterThanOrEqual(299);
  await database.kysely
    .updateTable('mail')
    .set({ state: 'sent', content: null, recipient: null })
    .where('crmId', '=', 'two')
    .execute();
  const afterwards = await value('mail_oldest_due_seconds');
  expect(afterwards).toBeGreaterThanOrEqual(59);
  expect(afterwards).toBeLessThan(299);
});

it('does not report mails that wait for a quota, or behind such a mail, as overdue', async () => {
  await database.kysely.deleteFrom('mail').execute();
  const aboutId = randomUUID();
  for (const crmId of ['one', 'two']) {
    await store(crmId, -600, { aboutId });
    await database.kysely.updateTable('mail').set({ held: true }).where('crmId', '=', crmId).execute();
    await store(crmId, 300, { aboutId, version: 2 });
  }
  expect(await value('mail_oldest_due_seconds')).toBe(0);
  await store('two', 60);
  expect(await value('mail_oldest_due_seconds')).toBeGreaterThanOrEqual(60);
  expect(await value('mail_oldest_due_seconds')).toBeLessThan(300);
});

it('includes mails that are not written, unless they are behind one that waits for a quota', async () => {
  await database.kysely.deleteFrom('mail').execute();
  const aboutId = randomUUID();
  await store('one', -600, { aboutId });
  await database.kysely.updateTable('mail').set({ held: true }).execute();
  const unwritten = {
    crmId: 'one',
    template: 'booking-moved',
    customerId: randomUUID(),
    actor: 'service',
    requestId: 'request',
    createdAt: new Date(Date.now() - 60_000),
  };
  const insert = (about: string) =>
    database.kysely
      .insertInto('unwrittenMail')
      .values({ ...unwritten, eventId: randomUUID(), aboutId: about, version: 2 })
      .execute();
  await insert(aboutId);
  expect([await value('mails_pending'), await value('mail_oldest_due_seconds')]).toEqual([2, 0]);
  await insert(randomUUID());
  expect(await value('mails_pending')).toBe(3);
  expect(await value('mail_oldest_due_seconds')).toBeGreaterThanOrEqual(60);
});

it('counts mails over quota by outcome and reason, and not as attempts', async () => {
  expect(await value('mails_over_quota_total', { outcome: 'hold', reason: 'crm-quota' })).toBe(0);
  const attempts = await value('mail_attempts_total');
  count({ outcome: 'hold', until: new Date(), room: 1, reason: 'crm-quota', serverAway: false });
  count({ outcome: 'drop', reason: 'superseded', serverAway: false });
  expect(await value('mails_over_quota_total', { outcome: 'hold', reason: 'crm-quota' })).toBe(1);
  expect(await value('mails_over_quota_total', { outcome: 'drop' })).toBe(1);
  expect(await value('mail_attempts_total')).toBe(attempts);
});

it('counts attempts by outcome', async () => {
  expect(await value('mail_attempts_total', { outcome: 'sent' })).toBe(0);
  count({ outcome: 'sent' });
  expect([await value('mail_attempts_total', { outcome: 'sent' }), await value('mail_attempts_total')]).toEqual([1, 1]);
});
