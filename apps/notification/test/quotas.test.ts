import { putBackBlockedRows } from '@scheduling/delivery';
import { createDatabase, type Database, startCleanUps } from '@scheduling/postgres';
import {
  createMigratedDatabase,
  eventually,
  longTimeout,
  startTestSmtp,
  testLogger,
  type TestSmtp,
} from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { migrateNotificationDatabase } from '../src/db/migrate.ts';
import type { MailContent, NotificationSchema } from '../src/db/schema.ts';
import { eraseMails } from '../src/erasure/erase-customer.ts';
import type { MailTemplate } from '@scheduling/runtime';
import { createQuotaCheck, type MailQuotas } from '../src/mail/check-quotas.ts';
import { startMailDelivery } from '../src/mail/deliver-mails.ts';
import { mailTable } from '../src/mail/mail-table.ts';
import { createOutcomeRecorder, type Outcome } from '../src/mail/record-outcome.ts';
import { notificationCleanUps } from '../src/clean-ups.ts';
import { storeMail } from '../src/mail/store-mail.ts';
import { defaultTimings, type MailTimings } from '../src/mail/timings.ts';
import { leaseMails } from './lease-mails.ts';
import { reportedFailures } from './failures.ts';

const logger = testLogger('notification');
const stack = new AsyncDisposableStack();
let smtp: TestSmtp;
let url: string;
let database: Database<NotificationSchema>;
let outcomes: Outcome[];

beforeAll(async () => {
  smtp = stack.use(await startTestSmtp());
  url = await createMigratedDatabase('notification', migrateNotificationDatabase);
  database = stack.use(createDatabase<NotificationSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
});
beforeEach(async () => {
  await database.kysely.deleteFrom('mail').execute();
  await database.kysely.deleteFrom('outbox').execute();
  smtp.mails.length = 0;
  smtp.trouble = () => undefined;
  outcomes = [];
});
afterAll(() => stack.disposeAsync());

const day = 24 * 60 * 60 * 1_000;
/** A window that does not end during a test, and does not end a mail's time either. */
const endless: Partial<MailTimings> = { quotaWindowMs: 365_000 * day, giveUpMs: Number.POSITIVE_INFINITY };

const deliver = (quotas: Partial<MailQuotas>, timings: Partial<MailTimings> = endless) =>
  startMailDelivery({
    database,
    smtpUrl: smtp.url,
    connections: 10,
    quotas: { toOneRecipient: 0, inTotal: 0, ...quotas },
    timings: { ...defaultTimings, pollMs: 50, firstRetryMs: 50, firstPauseMs: 20, longestPauseMs: 100, ...timings },
    onOutcome: (outcome) => outcomes.push(outcome),
    logger,
  });

const contentFor = (address: string, subject: string): MailContent => ({
  from: { name: 'Studio', address: 'hello@studio.example' },
  to: { name: 'Anna', address },
  language: 'en',
  subject,
  text: 'A text',
  html: '<p>A text</p>',
  calendars: [],
});

interface NewMail {
  crmId?: string;
  aboutId?: string;
  version?: number;
  template?: MailTemplate;
  customerId?: string;
  resendOf?: string;
  sandbox?: boolean;
}

const store = (
  address: string,
  {
    crmId = 'crm',
    aboutId = randomUUID(),
    version = 1,
    template = 'booking-confirmed',
    customerId,
    resendOf,
    sandbox = false,
  }: NewMail = {},
): Promise<void> =>
  database.transaction((tx) =>
    storeMail(tx, {
      crmId,
      eventId: randomUUID(),
      aboutId,
      version,
      template,
      customerId,
      resendOf,
      content: contentFor(address, `${template} ${version}`),
      sandbox,
    }),
  );

async function storeMany(count: number, addressOf: (index: number) => string, mail?: NewMail): Promise<void> {
  for (let index = 0; index < count; index += 1) await store(addressOf(index), mail);
}

function storeLastMail(address: string): Promise<void> {
  const [customerId, erasureId] = [randomUUID(), randomUUID()];
  const intent = {
    crmId: 'crm',
    eventId: erasureId,
    aboutId: erasureId,
    version: 0,
    template: 'removed-by-deletion' as const,
    content: contentFor(address, 'last'),
    sandbox: false,
  };
  return database.transaction((tx) =>
    storeMail(tx, { ...intent, customerId, erasureId, expiresAt: new Date(Date.now() + 60_000) }),
  );
}

const rows = () => database.kysely.selectFrom('mail').selectAll().orderBy('createdAt').execute();
const pending = () =>
  database.kysely.selectFrom('mail').selectAll().where('state', '=', 'pending').orderBy('createdAt').execute();
const recent = () => database.kysely.selectFrom('recentMail').selectAll().execute();
const subjectsFor = (address: string) =>
  smtp.mails.filter(({ recipients }) => recipients.includes(address)).map(({ parsed }) => parsed.subject);
const countOf = (outcome: Outcome['outcome']) => outcomes.filter((each) => each.outcome === outcome).length;
/** What the beginning of the next hour changes. */
const endWindow = async (): Promise<void> => {
  await database.kysely.deleteFrom('recentMail').execute();
  await database.kysely.updateTable('mail').set({ dueAt: new Date() }).where('state', '=', 'pending').execute();
};

describe('the quota of a recipient', () => {
  it('is one for all forms of the address', async () => {
    const forms = [
      'anna@bücher.example',
      'Anna@xn--bcher-kva.example',
      'anna@BÜCHER.example',
      'anna@bu\u0308cher.example',
    ];
    await storeMany(4, (index) => forms[index]!);
    await using _delivery = deliver({ toOneRecipient: 3 });
    await eventually(async () => expect(await pending()).toMatchObject([{ held: true, lastError: 'recipient-quota' }]));
    expect(smtp.mails).toHaveLength(3);
  });

  it('lets the surplus wait for the next hour, and nothing else', async () => {
    await storeMany(5, () => 'anna@example.com');
    await store('bill@example.com');
    await store('anna@example.com', { crmId: 'other' });
    await using _delivery = deliver({ toOneRecipient: 3 });
    const held = { crmId: 'crm', held: true, lease: null, attempts: 0, lastError: 'recipient-quota' };
    await eventually(async () => expect(await pending()).toMatchObject([held, held]));
    expect(subjectsFor('anna@example.com')).toHaveLength(4);
    expect(subjectsFor('bill@example.com')).toHaveLength(1);
    expect(countOf('hold')).toBe(2);
    for (const { dueAt } of await pending()) expect(dueAt.getTime()).toBeGreaterThan(Date.now() + day);

    await endWindow();
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com')).toHaveLength(6);
    expect((await rows()).every(({ state, held: isHeld }) => state === 'sent' && !isHeld)).toBe(true);
  });

  it('holds for a sandbox, too', async () => {
    await storeMany(3, () => 'anna@example.com', { sandbox: true });
    await using _delivery = deliver({ toOneRecipient: 2 });
    await eventually(async () => expect(await pending()).toMatchObject([{ held: true, lastError: 'recipient-quota' }]));
    expect(await database.kysely.selectFrom('sandboxMail').select('recipient').execute()).toHaveLength(2);
    expect(smtp.mails).toEqual([]);
  });

  it('delivers everything in the end, never more than the quota in one window', async () => {
    const quotaWindowMs = 1_000;
    await storeMany(6, () => 'anna@example.com');
    await using _delivery = deliver({ toOneRecipient: 2 }, { quotaWindowMs });
    await eventually(async () => expect(await pending()).toEqual([]));
    const windows = Map.groupBy(await rows(), ({ finishedAt }) => Math.floor(finishedAt!.getTime() / quotaWindowMs));
    expect(Math.max(...[...windows.values()].map((mails) => mails.length))).toBeLessThanOrEqual(2);
    expect(subjectsFor('anna@example.com')).toHaveLength(6);
  });

  it('drops what would have to wait for more than 24 hours', async () => {
    await storeMany(3, () => 'anna@example.com');
    await using _delivery = deliver({ toOneRecipient: 2 }, { ...endless, giveUpMs: day });
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com')).toHaveLength(2);
    const dropped = (await rows()).filter(({ state }) => state === 'failed');
    expect(dropped).toMatchObject([
      { lastError: 'recipient-quota', attempts: 0, content: null, recipient: null, held: false },
    ]);
    expect(outcomes.filter(({ outcome }) => outcome === 'drop')).toMatchObject([{ reason: 'recipient-quota' }]);
  });
});

describe('the surplus', () => {
  /** Of a window that began in 1970. */
  const windowMs = endless.quotaWindowMs!;

  it('is spread over as many windows as it needs', async () => {
    await storeMany(7, () => 'anna@example.com');
    await using _delivery = deliver({ toOneRecipient: 2 });
    await eventually(async () =>
      expect((await pending()).map(({ held }) => held)).toEqual([true, true, true, true, true]),
    );
    const waits = (await pending()).map(({ dueAt }) => dueAt.getTime() / windowMs);
    expect(waits.toSorted((one, other) => one - other)).toEqual([1, 1, 2, 2, 3]);
    expect(countOf('hold')).toBe(5);
  });

  it('of a CRM is spread in the same way', async () => {
    await storeMany(2, (index) => `${index}@one.example`);
    await using _delivery = deliver({ inTotal: 2 });
    await eventually(async () => expect(await pending()).toEqual([]));
    for (let index = 2; index < 7; index += 1) {
      await store(`${index}@one.example`);
      await eventually(async () =>
        expect((await pending()).at(-1)).toMatchObject({ held: true, lease: null, lastError: 'crm-quota' }),
      );
    }
    expect((await pending()).map(({ dueAt }) => dueAt.getTime() / windowMs)).toEqual([1, 1, 2, 2, 3]);
  });

  it('is dropped at once if there is no room for it within 24 hours', async () => {
    await storeMany(7, () => 'anna@example.com');
    await using _delivery = deliver({ toOneRecipient: 2 }, { ...endless, giveUpMs: 1.5 * windowMs });
    await eventually(() => expect(countOf('drop')).toBe(3));
    expect(countOf('hold')).toBe(2);
  });
});

describe('the decision about one mail over a quota', () => {
  const decide = async (quotas: MailQuotas, timings: Partial<MailTimings> = endless): Promise<Outcome[]> => {
    const [mail] = await leaseMails(database, { total: 1 });
    const decision = await createQuotaCheck(database, quotas, { ...defaultTimings, ...timings })(mail!);
    return createOutcomeRecorder(database)(mail!, decision!);
  };
  const quota = 5;
  /** How many of the mails to a recipient are held, and how many are not. */
  const decided = async (recipient: string) => {
    const mails = (await rows()).filter(
      ({ recipient: address, template }) => address === recipient && template === 'booking-confirmed',
    );
    return { held: mails.filter(({ held }) => held).length, free: mails.filter(({ held }) => !held).length };
  };

  const exhaust = async (): Promise<void> => {
    await database.kysely.deleteFrom('recentMail').execute();
    await using _delivery = deliver({});
    await storeMany(quota, () => 'anna@example.com');
    await eventually(async () => expect(await recent()).toHaveLength(quota));
  };

  it('goes for as many as can wait for the same hour, and for no urgent ones or other recipients', async () => {
    await exhaust();
    await storeMany(quota + 3, () => 'anna@example.com');
    await store('anna@example.com', { template: 'booking-cancelled' });
    await store('bill@example.com');
    const hold = { outcome: 'hold', reason: 'recipient-quota' };
    expect(await decide({ toOneRecipient: quota, inTotal: 0 })).toMatchObject(
      Array.from({ length: quota - 1 }, () => hold),
    );
    expect(await decided('anna@example.com')).toEqual({ held: quota, free: 3 });
    expect(await decided('bill@example.com')).toEqual({ held: 0, free: 1 });
    expect(await pending()).toContainEqual(expect.objectContaining({ template: 'booking-cancelled', held: false }));
    expect(new Set((await pending()).filter(({ held }) => held).map(({ dueAt }) => dueAt.getTime())).size).toBe(1);
  });

  it('goes for all recipients if it is the quota of the CRM, and for no other CRM', async () => {
    await exhaust();
    await storeMany(2, () => 'anna@example.com');
    await storeMany(2, () => 'bill@example.com');
    await store('cleo@example.com', { crmId: 'other' });
    expect(await decide({ toOneRecipient: 0, inTotal: quota })).toHaveLength(3);
    expect(await decided('anna@example.com')).toEqual({ held: 2, free: 0 });
    expect(await decided('bill@example.com')).toEqual({ held: 2, free: 0 });
    expect(await decided('cleo@example.com')).toEqual({ held: 0, free: 1 });
  });

  it('drops all that would have to wait for too long, and reports each', async () => {
    await exhaust();
    await storeMany(quota + 3, () => 'anna@example.com');
    await store('anna@example.com', { template: 'booking-cancelled' });
    const drop = { outcome: 'drop', reason: 'recipient-quota' };
    expect(await decide({ toOneRecipient: quota, inTotal: 0 }, { ...endless, giveUpMs: day })).toMatchObject(
      Array.from({ length: quota + 2 }, () => drop),
    );
    expect(await pending()).toMatchObject([{ template: 'booking-cancelled' }]);
    const dropped = (await rows()).filter(({ state }) => state === 'failed');
    expect(dropped).toHaveLength(quota + 3);
    expect((await reportedFailures(database)).toSorted()).toEqual(dropped.map(({ id }) => id).toSorted());
    expect(dropped.every(({ content, recipient, held }) => content === null && recipient === null && !held)).toBe(true);
  });
});

describe('the quota of a CRM', () => {
  it('counts its mails to all recipients, and no other CRM waits', async () => {
    await storeMany(6, (index) => `${index}@one.example`, { crmId: 'busy' });
    await using _delivery = deliver({ inTotal: 4 });
    await eventually(async () => expect((await pending()).every(({ held }) => held)).toBe(true));
    await store('7@one.example', { crmId: 'busy' });
    await store('anna@example.com', { crmId: 'other' });
    await eventually(() => expect(subjectsFor('anna@example.com')).toHaveLength(1));
    await eventually(async () =>
      expect((await pending()).at(-1)).toMatchObject({ crmId: 'busy', held: true, lastError: 'crm-quota' }),
    );
    expect(subjectsFor('7@one.example')).toEqual([]);
    await endWindow();
    await eventually(() => expect(subjectsFor('7@one.example')).toHaveLength(1));
  });

  it('is not exceeded by more than what is sent at once, although it is not counted for every mail', async () => {
    await storeMany(100, (index) => `${index}@example.com`);
    await using _one = deliver({ inTotal: 40 });
    await using _other = deliver({ inTotal: 40 });
    await eventually(async () => expect((await pending()).filter(({ held }) => !held)).toEqual([]));
    expect(smtp.mails.length).toBeGreaterThanOrEqual(40);
    expect(smtp.mails.length).toBeLessThanOrEqual(40 + 2 * 5);
  });
});

describe('an urgent mail', () => {
  it.each(['booking-cancelled', 'appointment-cancelled', 'request-declined'] as const)(
    '%s is sent although the quotas are exhausted',
    async (template) => {
      await using _delivery = deliver({ toOneRecipient: 1, inTotal: 1 });
      await store('anna@example.com');
      await eventually(() => expect(subjectsFor('anna@example.com')).toHaveLength(1));
      await eventually(async () => expect(await recent()).toHaveLength(1));
      await storeMany(3, () => 'anna@example.com', { template });
      await eventually(() => expect(subjectsFor('anna@example.com')).toHaveLength(4));
      // It counts nevertheless.
      await eventually(async () => expect(await recent()).toHaveLength(4));
      expect(countOf('hold')).toBe(0);
    },
  );

  it('does not wait behind mails about the same booking that are held, and supersedes them', async () => {
    await using _delivery = deliver({ toOneRecipient: 1 });
    await store('anna@example.com', { template: 'email-verification', version: 0 });
    await eventually(() => expect(countOf('sent')).toBe(1));
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1, template: 'request-received' });
    await eventually(async () => expect(await pending()).toMatchObject([{ held: true, lease: null }]));
    await store('anna@example.com', { aboutId, version: 2, template: 'request-confirmed' });
    await store('anna@example.com', { aboutId, version: 3, template: 'booking-cancelled' });
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com')).toEqual(['email-verification 0', 'booking-cancelled 3']);
    const superseded = { state: 'failed', lastError: 'superseded', content: null, recipient: null, held: false };
    expect((await rows()).slice(1)).toMatchObject([
      { ...superseded, version: 1 },
      { ...superseded, version: 2 },
      { state: 'sent', version: 3 },
    ]);
    expect(await reportedFailures(database)).toEqual([]);
    await eventually(() =>
      expect(outcomes.filter(({ outcome }) => outcome === 'drop')).toMatchObject([
        { reason: 'superseded' },
        { reason: 'superseded' },
      ]),
    );
  });

  it('keeps a held mail from being sent after it, even while it is retried itself', async () => {
    await using _delivery = deliver({ toOneRecipient: 1 });
    await store('anna@example.com', { template: 'email-verification', version: 0 });
    await eventually(() => expect(countOf('sent')).toBe(1));
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1 });
    await eventually(async () => expect(await pending()).toMatchObject([{ held: true, lease: null }]));
    smtp.trouble = () => ({ at: 'rcpt', code: 451 });
    await store('anna@example.com', { aboutId, version: 2, template: 'booking-cancelled' });
    await eventually(() => expect(countOf('retry')).toBeGreaterThan(0));
    await endWindow();
    await eventually(async () => expect((await rows())[1]).toMatchObject({ state: 'failed', lastError: 'superseded' }));
    smtp.trouble = () => undefined;
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com')).toEqual(['email-verification 0', 'booking-cancelled 2']);
  });

  it('that was not overtaken waits for the earlier mail, which is sent first', async () => {
    const aboutId = randomUUID();
    smtp.trouble = (_, attempt) => (attempt <= 2 ? { at: 'rcpt', code: 451 } : undefined);
    await store('cleo@example.com', { aboutId, version: 2, template: 'booking-cancelled' });
    await store('cleo@example.com', { aboutId, version: 1 });
    await using _delivery = deliver({ toOneRecipient: 5 });
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('cleo@example.com')).toEqual(['booking-confirmed 1', 'booking-cancelled 2']);
  });
});

describe('a copy of an urgent mail', () => {
  it.each([
    ['recipient-quota', { toOneRecipient: 1 }],
    ['crm-quota', { inTotal: 1 }],
  ])('waits for the %s, unlike the first one', async (reason, quotas) => {
    await using _delivery = deliver(quotas);
    const booking = { aboutId: randomUUID(), template: 'booking-cancelled' as const };
    await store('anna@example.com', { ...booking, aboutId: randomUUID() });
    await store('anna@example.com', booking);
    await eventually(() => expect(countOf('sent')).toBe(2));
    await store('anna@example.com', { ...booking, resendOf: (await rows())[1]!.id });
    await eventually(async () => expect(await pending()).toMatchObject([{ held: true, lastError: reason }]));
    expect(subjectsFor('anna@example.com')).toHaveLength(2);
    await endWindow();
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com')).toHaveLength(3);
  });
});

describe('an attempt of another process', () => {
  const unlimited = { toOneRecipient: 0, inTotal: 0 };

  it('to send a held mail keeps an urgent one about the same booking waiting until it is over', async () => {
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1 });
    await database.kysely.updateTable('mail').set({ held: true }).execute();
    const [held] = await leaseMails(database);
    await store('anna@example.com', { aboutId, version: 2, template: 'booking-cancelled' });
    expect(await leaseMails(database)).toEqual([]);
    await createOutcomeRecorder(database)(held!, {
      outcome: 'hold',
      until: new Date(Date.now() + day),
      room: 1,
      reason: 'crm-quota',
      serverAway: false,
    });
    expect(await leaseMails(database)).toMatchObject([{ version: 2 }]);
  });

  it('at the same moment sends neither an earlier mail after an urgent one that overtakes it, nor that one before the earlier one', async () => {
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1 });
    const [first] = await leaseMails(database);
    await store('anna@example.com', { aboutId, version: 2 });
    await store('anna@new.example', { aboutId, version: 3, template: 'booking-cancelled' });
    await database.kysely
      .updateTable('mail')
      .set({ held: true, dueAt: new Date(Date.now() + day) })
      .where('version', '=', 2)
      .execute();
    expect(await leaseMails(database)).toEqual([]);
    const setLease = (lease: string | null) =>
      database.kysely.updateTable('mail').set({ lease }).where('version', '=', 1).execute();
    await setLease(null);
    const [urgent] = await leaseMails(database);
    expect(urgent).toMatchObject({ version: 3 });
    await setLease(first!.lease);
    const check = createQuotaCheck(database, unlimited, defaultTimings);
    expect(await check(urgent!)).toEqual({ outcome: 'postpone', reason: 'not its turn', serverAway: false });
    expect(await check(first!)).toEqual({ outcome: 'drop', reason: 'superseded', serverAway: false });
  });

  it.each(['booking-confirmed', 'booking-cancelled'] as const)(
    'sends no %s once its lease is lost, or the person was erased',
    async (template) => {
      const customerId = randomUUID();
      await store('anna@example.com', { customerId, template });
      const [first] = await leaseMails(database);
      expect(await createQuotaCheck(database, unlimited, defaultTimings)(first!)).toBeUndefined();
      await database.kysely.updateTable('mail').set({ dueAt: new Date() }).execute();
      const [second] = await leaseMails(database);
      const lost = { outcome: 'postpone', reason: 'not its turn', serverAway: false };
      expect(await createQuotaCheck(database, unlimited, defaultTimings)(first!)).toEqual(lost);
      await eraseMails(database, { crmId: 'crm', customerId });
      expect(await createQuotaCheck(database, unlimited, defaultTimings)(second!)).toEqual(lost);
    },
  );

  it('that lost its lease confirms no erasure, and drops no earlier mail', async () => {
    const aboutId = randomUUID();
    await storeLastMail('anna@example.com');
    await store('ben@example.com', { aboutId, version: 1 });
    await database.kysely
      .updateTable('mail')
      .set({ held: true, dueAt: new Date(Date.now() + day) })
      .where('version', '=', 1)
      .execute();
    await store('ben@example.com', { aboutId, version: 2, template: 'booking-cancelled' });
    const mails = await leaseMails(database);
    await database.kysely.updateTable('mail').set({ lease: randomUUID() }).execute();
    const readAll = async () => [await rows(), await database.kysely.selectFrom('outbox').selectAll().execute()];
    const before = await readAll();
    const record = createOutcomeRecorder(database);
    for (const mail of mails) expect(await record(mail, { outcome: 'sent' })).toEqual([]);
    expect(await readAll()).toEqual(before);
    expect(mails.map(({ template }) => template).toSorted()).toEqual(['booking-cancelled', 'removed-by-deletion']);
  });
});

describe('mails about one booking', () => {
  it('keep their order when the first one is held', async () => {
    await using _delivery = deliver({ toOneRecipient: 1 });
    await store('anna@example.com', { template: 'email-verification', version: 0 });
    await eventually(() => expect(countOf('sent')).toBe(1));
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1, template: 'request-received' });
    await store('anna@example.com', { aboutId, version: 2, template: 'request-confirmed' });
    const waiting = (version: number) => ({ version, held: false, lease: null });
    const held = (version: number) => ({ ...waiting(version), held: true });
    await eventually(async () => expect(await pending()).toMatchObject([held(1), waiting(2)]));
    await endWindow();
    await eventually(async () => expect(await pending()).toMatchObject([held(2)]));
    await endWindow();
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com').slice(1)).toEqual(['request-received 1', 'request-confirmed 2']);
  });
});

describe('mails that wait for others', () => {
  /** Mails about as many bookings that wait for a later hour, and two later ones about each that are due. */
  const storeWaiting = async (bookings: number): Promise<void> => {
    await sql`
      INSERT INTO mail (crm_id, event_id, about_id, version, template, request_id, content, recipient, due_at, held)
      SELECT 'crm', gen_random_uuid(), md5(booking::text)::uuid, version, 'appointment-changed', 'request', ${JSON.stringify(contentFor('anna@example.com', 'waits'))}::jsonb,
             'anna@example.com', now() - interval '1 minute' + CASE WHEN version = 1 THEN interval '1 day' ELSE interval '0' END, version = 1
        FROM generate_series(1, ${bookings}::int) AS booking, generate_series(1, 3) AS version`.execute(
      database.kysely,
    );
  };

  const putBackBlocked = (db: Kysely<NotificationSchema>) =>
    putBackBlockedRows(db as unknown as Kysely<unknown>, mailTable, { limits: { perCrm: 5 }, leased: [] });

  /** The number of table rows that it reads, with or without an index. */
  async function countRowsRead(read: (db: Kysely<NotificationSchema>) => Promise<unknown>): Promise<number> {
    await using single = createDatabase<NotificationSchema>({
      url,
      applicationName: 'test',
      logger,
      maxConnections: 1,
      ...longTimeout,
    });
    // They would report meanwhile what they have read before.
    await sql`
      SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
       WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`.execute(
      single.kysely,
    );
    const count = async () => {
      await sql`SELECT pg_stat_force_next_flush()`.execute(single.kysely);
      const {
        rows: [counted],
      } = await sql<{
        count: number;
      }>`SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int8 AS count FROM pg_stat_user_tables`.execute(
        single.kysely,
      );
      return counted!.count;
    };
    const before = await count();
    await read(single.kysely);
    return (await count()) - before;
  }

  it('keep no mail to somebody else waiting, nor a cancellation, however many there are', async () => {
    await storeWaiting(1_500);
    const { aboutId } = await database.kysely.selectFrom('mail').select('aboutId').limit(1).executeTakeFirstOrThrow();
    await store('bill@example.com');
    await store('cleo@example.com', { template: 'booking-cancelled' });
    await store('anna@example.com', { aboutId, version: 4, template: 'booking-cancelled' });
    await using _delivery = deliver({ toOneRecipient: 1 });
    await eventually(() =>
      expect(new Set(smtp.mails.map(({ parsed }) => parsed.subject))).toEqual(
        new Set(['booking-cancelled 1', 'booking-cancelled 4', 'booking-confirmed 1']),
      ),
    );
  });

  it.each([0, 1, 3, 30, 4_000])(
    'are found and put back without reading the whole table for each, if %s bookings had mails when the table was last analysed',
    async (bookings) => {
      await storeWaiting(bookings);
      await sql`VACUUM ANALYZE mail`.execute(database.kysely);
      if (bookings < 4_000) {
        await database.kysely.deleteFrom('mail').execute();
        await storeWaiting(4_000);
      }
      // A thousand rows and those that they wait for, each by an index, and all of so small a table at most for each of
      // the two joins.
      const most = 10 * 1_000 + 2 * 3 * 4_000;
      expect(await countRowsRead((db) => putBackBlocked(db))).toBeLessThan(most);
      expect(await countRowsRead((db) => leaseMails({ kysely: db }))).toBeLessThan(most);
    },
  );

  it('are not put back for longer than what they wait for', async () => {
    await storeWaiting(501);
    expect(await putBackBlocked(database.kysely)).toBe(1_000);
    await sql`UPDATE mail SET due_at = now() + interval '1 minute' WHERE held`.execute(database.kysely);
    await sql`UPDATE mail SET due_at = now() WHERE NOT held`.execute(database.kysely);
    await putBackBlocked(database.kysely);
    const later = (await pending()).filter(({ held, dueAt }) => !held && dueAt.getTime() > Date.now());
    expect(later.length).toBe(1_000);
    expect(later.every(({ dueAt }) => dueAt.getTime() < Date.now() + 2 * 60_000)).toBe(true);
  });

  it('about one booking are the first and the newest four', async () => {
    await using _delivery = deliver({ toOneRecipient: 1 });
    await store('anna@example.com', { template: 'email-verification', version: 0 });
    await eventually(() => expect(countOf('sent')).toBe(1));
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1 });
    await eventually(async () => expect(await pending()).toMatchObject([{ held: true, lease: null }]));
    for (let version = 2; version <= 30; version += 1)
      await store('anna@example.com', { aboutId, version, template: 'appointment-changed' });
    expect((await pending()).map(({ version }) => version)).toEqual([1, 27, 28, 29, 30]);
    const dropped = (await rows()).filter(({ state }) => state === 'failed');
    expect(dropped).toHaveLength(25);
    expect(
      dropped.every(
        ({ lastError, content, recipient, finishedAt }) =>
          lastError === 'superseded' && content === null && recipient === null && finishedAt !== null,
      ),
    ).toBe(true);
    expect(await reportedFailures(database)).toEqual([]);
    for (const next of [27, 28, 29, 30]) {
      await endWindow();
      await eventually(async () =>
        expect((await pending())[0]).toMatchObject({ version: next, held: true, lease: null }),
      );
    }
    await endWindow();
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(subjectsFor('anna@example.com').slice(1)).toEqual([
      'booking-confirmed 1',
      ...[27, 28, 29, 30].map((version) => `appointment-changed ${version}`),
    ]);
  });

  it('are never dropped for a newer one if they are cancellations or being sent, or about something else', async () => {
    const aboutId = randomUUID();
    await store('anna@example.com', { aboutId, version: 1 });
    await store('anna@example.com', { aboutId, version: 3 });
    const cancellations = ['booking-cancelled', 'appointment-cancelled', 'request-declined'] as const;
    for (const [index, template] of cancellations.entries())
      await store('anna@example.com', { aboutId, version: index + 4, template });
    await database.kysely.updateTable('mail').set({ lease: randomUUID() }).where('version', '=', 3).execute();
    await store('anna@example.com', { version: 2 });
    await store('anna@example.com', { aboutId, version: 100 });
    for (let version = 7; version <= 12; version += 1) await store('anna@example.com', { aboutId, version });
    const left = (await pending()).filter((mail) => mail.aboutId === aboutId).map(({ version }) => version);
    expect(left.toSorted((one, other) => one - other)).toEqual([1, 3, 4, 5, 6, 10, 11, 12, 100]);
    expect((await pending()).filter((mail) => mail.aboutId !== aboutId)).toMatchObject([{ version: 2 }]);
  });
});

describe('the digest of a recipient', () => {
  it('contains no address, differs between CRMs, and is deleted with the customer', async () => {
    const customerId = randomUUID();
    await using _delivery = deliver({});
    await store('anna@example.com', { customerId });
    await store('anna@example.com', { crmId: 'other' });
    await eventually(async () => expect(await recent()).toHaveLength(2));
    const [one, other] = await recent();
    expect(one!.recipientDigest).toHaveLength(32);
    expect(one!.recipientDigest.equals(other!.recipientDigest)).toBe(false);
    await eraseMails(database, { crmId: 'crm', customerId });
    expect(await recent()).toMatchObject([{ crmId: 'other' }]);
  });

  it('is not stored for the last mail to an erased person, which never waits', async () => {
    await using _delivery = deliver({ toOneRecipient: 1, inTotal: 1 });
    await store('anna@example.com');
    await eventually(async () => expect(await recent()).toHaveLength(1));
    await storeLastMail('anna@example.com');
    await eventually(() => expect(subjectsFor('anna@example.com')).toEqual(['booking-confirmed 1', 'last']));
    await eventually(async () => expect(await pending()).toEqual([]));
    expect(await recent()).toHaveLength(1);
  });

  it('is deleted when its hour is over', async () => {
    await using _delivery = deliver({});
    await storeMany(3, (index) => `${index}@example.com`);
    await eventually(async () => expect(await recent()).toHaveLength(3));
    const [first, second] = await recent();
    await database.kysely
      .updateTable('recentMail')
      .set({ sentAt: sql<Date>`date_trunc('hour', now()) - interval '1 second'` })
      .where('mailId', 'in', [first!.mailId, second!.mailId])
      .execute();
    await using _cleanUp = startCleanUps({ database, logger, cleanUps: notificationCleanUps });
    await eventually(async () => expect(await recent()).toHaveLength(1));
  });
});
