import { createDatabase, type Database } from '@scheduling/postgres';
import {
  createCertificateAuthority,
  createMigratedDatabase,
  eventually,
  longTimeout,
  startTestSmtp,
  testLogger,
  type TestSmtp,
} from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { migrateNotificationDatabase } from '../src/db/migrate.ts';
import type { MailContent, NotificationSchema } from '../src/db/schema.ts';
import { recipientDigest } from '../src/mail/check-quotas.ts';
import { startMailDelivery } from '../src/mail/deliver-mails.ts';
import { createOutcomeRecorder } from '../src/mail/record-outcome.ts';
import { storeMail } from '../src/mail/store-mail.ts';
import { defaultTimings, type MailTimings } from '../src/mail/timings.ts';
import { leaseMails } from './lease-mails.ts';
import { reportedFailures } from './failures.ts';

const logger = testLogger('notification');
const stack = new AsyncDisposableStack();
let smtp: TestSmtp;
let database: Database<NotificationSchema>;

beforeAll(async () => {
  smtp = stack.use(await startTestSmtp());
  const url = await createMigratedDatabase('notification', migrateNotificationDatabase);
  database = stack.use(createDatabase<NotificationSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
});
beforeEach(async () => {
  await database.kysely.deleteFrom('mail').execute();
  await database.kysely.deleteFrom('outbox').execute();
  smtp.mails.length = 0;
  smtp.logins.length = 0;
  smtp.trouble = () => undefined;
});
afterAll(() => stack.disposeAsync());

const fast: Partial<MailTimings> = {
  pollMs: 50,
  firstRetryMs: 50,
  firstPauseMs: 20,
  longestPauseMs: 100,
  uncertainRetryMs: 300,
};

const unlimited = { toOneRecipient: 0, inTotal: 0 };
const deliver = (timings: Partial<MailTimings> = {}, smtpUrl = smtp.url, sandboxSmtpUrl?: string) =>
  startMailDelivery({
    database,
    smtpUrl,
    sandboxSmtpUrl,
    connections: 10,
    quotas: unlimited,
    timings: { ...defaultTimings, ...fast, ...timings },
    onOutcome: () => undefined,
    logger,
  });

const contentFor = (address: string): MailContent => ({
  from: { name: 'Studio', address: 'hello@studio.example' },
  to: { name: 'Anna', address },
  language: 'en',
  subject: 'A mail',
  text: 'A text',
  html: '<p>A text</p>',
  calendars: [],
});

interface NewMail {
  crmId?: string;
  aboutId?: string;
  version?: number;
  sandbox?: boolean;
}

const storeAll = (
  addresses: string[],
  { crmId = 'crm', aboutId, version = 1, sandbox = false }: NewMail = {},
): Promise<void> =>
  database.transaction(async (tx) => {
    for (const address of addresses) {
      const intent = {
        crmId,
        eventId: randomUUID(),
        aboutId: aboutId ?? randomUUID(),
        version,
        content: contentFor(address),
        sandbox,
      };
      await storeMail(tx, { ...intent, template: 'booking-confirmed' });
    }
  });

const rows = () => database.kysely.selectFrom('mail').selectAll().execute();
const pending = () => database.kysely.selectFrom('mail').selectAll().where('state', '=', 'pending').execute();
const copiesFor = (address: string) => smtp.mails.filter(({ recipients }) => recipients.includes(address));
const addresses = (count: number, domain: string) => Array.from({ length: count }, (_, index) => `${index}@${domain}`);
const untilFinished = () => eventually(async () => expect(await pending()).toEqual([]));

describe('a mail that is rejected', () => {
  it.each([
    ['421 at the recipient', 'rcpt', 421],
    ['450 at the recipient', 'rcpt', 450],
    ['421 behind the text', 'data', 421],
    ['451 behind the text', 'data', 451],
  ] as const)('arrives once after %s, three times', async (_, at, code) => {
    await using _delivery = deliver();
    smtp.trouble = (recipient, attempt) =>
      recipient === `${at}${code}@refused.example` && attempt <= 3 ? { at, code } : undefined;
    await storeAll([`${at}${code}@refused.example`, 'other@example.com']);
    await untilFinished();
    expect(copiesFor(`${at}${code}@refused.example`)).toHaveLength(1);
    expect(copiesFor('other@example.com')).toHaveLength(1);
    expect(
      (await rows())
        .map(({ state, attempts }) => ({ state, attempts }))
        .sort((one, other) => one.attempts - other.attempts),
    ).toEqual([
      { state: 'sent', attempts: 1 },
      { state: 'sent', attempts: 4 },
    ]);
    expect(await reportedFailures(database)).toEqual([]);
  });

  it.each([
    ['rcpt', 550, 'EENVELOPE RCPT TO 550'],
    ['data', 554, 'EMESSAGE DATA 554'],
  ] as const)(
    'permanently at %s fails immediately, is reported, and its content is deleted',
    async (at, code, reason) => {
      await using _delivery = deliver();
      smtp.trouble = () => ({ at, code });
      await storeAll([`gone-${code}@refused.example`]);
      await untilFinished();
      expect(await rows()).toMatchObject([
        { state: 'failed', attempts: 1, lastError: reason, content: null, recipient: null, lease: null },
      ]);
      expect(await reportedFailures(database)).toEqual((await rows()).map(({ id }) => id));
      expect(smtp.mails).toEqual([]);
    },
  );
});

describe('a mail of a sandbox', () => {
  it('goes to the server for developers only, and is finished if that one rejects it or is away', async () => {
    await using catcher = await startTestSmtp();
    catcher.trouble = (recipient) => (recipient === 'rejected@example.com' ? { at: 'rcpt', code: 550 } : undefined);
    await storeAll(['shown@example.com', 'rejected@example.com'], { sandbox: true });
    {
      await using _delivery = deliver({}, smtp.url, catcher.url);
      await untilFinished();
    }
    expect(catcher.mails.map(({ recipients }) => recipients)).toEqual([['shown@example.com']]);
    await storeAll(['away@example.com'], { sandbox: true });
    await using _delivery = deliver({}, smtp.url, 'smtp://127.0.0.1:1');
    await untilFinished();
    expect((await rows()).map(({ state }) => state)).toEqual(['sent', 'sent', 'sent']);
    expect(await database.kysely.selectFrom('sandboxMail').select('recipient').execute()).toHaveLength(3);
    expect(smtp.mails).toEqual([]);
  });

  it('is finished while the mail server is away, and says nothing about it', async () => {
    await using _delivery = deliver({}, 'smtp://127.0.0.1:1');
    await storeAll(['real@example.com']);
    await eventually(async () =>
      expect(await pending()).toMatchObject([{ lastError: expect.stringContaining('ESOCKET') }]),
    );
    await storeAll(addresses(20, 'example.com'), { sandbox: true });
    await eventually(async () => expect(await pending()).toHaveLength(1));
    expect(await rows()).toHaveLength(21);
  });
});

describe('a server without TLS', () => {
  it('receives nothing when TLS is required, and no mail is lost', async () => {
    await storeAll(['secret@example.com']);
    {
      await using _delivery = deliver({}, `${smtp.url}?requireTLS=true`);
      await eventually(async () =>
        expect(await pending()).toMatchObject([{ attempts: 0, lastError: expect.stringContaining('STARTTLS') }]),
      );
    }
    expect(smtp.mails).toEqual([]);
    await using _delivery = deliver();
    await untilFinished();
    expect(copiesFor('secret@example.com')).toHaveLength(1);
  });

  it('on another machine receives neither the password nor a mail, unless the URL allows it, and no mail is lost', async () => {
    // An address of this machine that could as well be another one's.
    const elsewhere = smtp.url.replace('smtp://127.0.0.1', 'smtp://user:password@0.0.0.0');
    await storeAll(['secret@example.com']);
    {
      await using _delivery = deliver({}, elsewhere);
      await eventually(async () =>
        expect(await pending()).toMatchObject([{ attempts: 0, lastError: expect.stringContaining('STARTTLS') }]),
      );
    }
    expect([smtp.logins, smtp.mails]).toEqual([[], []]);
    await using _delivery = deliver({}, `${elsewhere}?requireTLS=false`);
    await untilFinished();
    expect(smtp.logins).toEqual([{ user: 'user', secure: false }]);
    expect(copiesFor('secret@example.com')).toHaveLength(1);
  });
});

describe('a server with STARTTLS', () => {
  it('receives the password and the mails encrypted', async () => {
    const authority = await createCertificateAuthority();
    await using encrypted = await startTestSmtp({ certificate: await authority.issue('mail.example') });
    await storeAll(['secret@example.com']);
    await using _delivery = deliver(
      {},
      `${encrypted.url.replace('127.0.0.1', 'user:password@0.0.0.0')}?tls.rejectUnauthorized=false`,
    );
    await untilFinished();
    expect(encrypted.logins).toEqual([{ user: 'user', secure: true }]);
    expect(encrypted.mails).toHaveLength(1);
  });
});

describe('a server that hangs', () => {
  it('does not delay other recipients, and the mail arrives once', async () => {
    await using _delivery = deliver();
    const released = Promise.withResolvers<void>();
    const hanging = new Set<string>();
    smtp.trouble = (recipient) => {
      if (!recipient.endsWith('@slow.example') || (!hanging.has(recipient) && hanging.size === 5)) return undefined;
      hanging.add(recipient);
      return { at: 'data', hangUntil: released.promise };
    };
    await storeAll(addresses(8, 'slow.example'), { crmId: 'slow' });
    await eventually(() => expect(smtp.mails.length).toBe(5));
    await storeAll(addresses(50, 'fast.example'), { crmId: 'fast' });
    await eventually(() =>
      expect(smtp.mails.filter(({ recipients }) => recipients[0]!.endsWith('@fast.example'))).toHaveLength(50),
    );
    expect((await pending()).filter(({ crmId }) => crmId === 'slow')).toHaveLength(8);
    released.resolve();
    await untilFinished();
    expect(smtp.mails).toHaveLength(58);
    expect(new Set(smtp.mails.map(({ recipients }) => recipients[0])).size).toBe(58);
  });

  it('does not keep the process from stopping, and the mail is sent by the next one', async () => {
    let attempts = 0;
    smtp.trouble = (_, attempt) => {
      attempts = attempt;
      return attempt === 1 ? { at: 'rcpt', hangMs: 60_000 } : undefined;
    };
    const delivery = deliver({ stopMs: 100 });
    await storeAll(['patient@example.com']);
    await eventually(() => expect(attempts).toBe(1));
    const startMs = performance.now();
    await delivery[Symbol.asyncDispose]();
    // It does not wait for the response: every process stops within 10 s.
    expect(performance.now() - startMs).toBeLessThan(10_000);
    expect(await pending()).toMatchObject([{ lease: null, attempts: 0, lastError: 'stopped' }]);
    await using _next = deliver();
    await untilFinished();
    expect(copiesFor('patient@example.com')).toHaveLength(1);
  });
});

describe('a server that dies after the message text', () => {
  it('receives the mail once more, with the same id', async () => {
    await using _delivery = deliver();
    smtp.trouble = (_, attempt) => (attempt === 1 ? { at: 'data', dies: true } : undefined);
    await storeAll(['twice@example.com']);
    await eventually(async () => expect(await pending()).toMatchObject([{ uncertain: true }]));
    await untilFinished();
    expect(copiesFor('twice@example.com')).toHaveLength(2);
    expect(new Set(smtp.mails.map(({ parsed }) => parsed.messageId)).size).toBe(1);
    expect(await rows()).toMatchObject([{ state: 'sent', attempts: 2 }]);
  });

  it('every time receives no third copy', async () => {
    await using _delivery = deliver();
    smtp.trouble = () => ({ at: 'data', dies: true });
    await storeAll(['always@example.com']);
    await untilFinished();
    expect(copiesFor('always@example.com')).toHaveLength(2);
    expect(await rows()).toMatchObject([
      { state: 'failed', attempts: 2, lastError: expect.stringContaining('uncertain twice') },
    ]);
  });
});

describe('a server that is down under load', () => {
  it('receives every mail when it is back, and a second copy only of those it may have had', async () => {
    await using _one = deliver();
    await using _two = deliver();
    const all = ['one', 'two', 'three'].flatMap((crmId) => addresses(60, `${crmId}.example`));
    for (const crmId of ['one', 'two', 'three']) await storeAll(addresses(60, `${crmId}.example`), { crmId });
    await eventually(() => expect(smtp.mails.length).toBeGreaterThan(50));
    await smtp.stop();
    await storeAll(addresses(20, 'four.example'), { crmId: 'four' });
    await eventually(async () =>
      expect((await pending()).some(({ lastError: error }) => error?.includes('ESOCKET'))).toBe(true),
    );
    expect((await rows()).filter(({ state }) => state === 'failed')).toEqual([]);
    await smtp.start();
    await untilFinished();
    for (const address of [...all, ...addresses(20, 'four.example')])
      expect(copiesFor(address).length, address).toBeGreaterThanOrEqual(1);
    const uncertain = (await rows()).filter((row) => row.uncertain).length;
    expect(smtp.mails.length).toBeLessThanOrEqual(200 + uncertain);
    expect((await rows()).every(({ state }) => state === 'sent')).toBe(true);
  }, 180_000);
});

describe('turns', () => {
  it('a CRM with a single mail does not wait for one with hundreds', async () => {
    const smallArrived = Promise.withResolvers<void>();
    smtp.trouble = (recipient) =>
      recipient.endsWith('@big.example') && smtp.mails.length >= 20
        ? { at: 'rcpt', hangUntil: smallArrived.promise }
        : undefined;
    await storeAll(addresses(500, 'big.example'), { crmId: 'big' });
    await using _delivery = deliver();
    await eventually(() => expect(smtp.mails.length).toBeGreaterThanOrEqual(20));
    await storeAll(['someone@small.example'], { crmId: 'small' });
    await eventually(() => expect(copiesFor('someone@small.example')).toHaveLength(1));
    smallArrived.resolve();
  });

  it('mails about one booking are sent in order, even when the first has to be retried', async () => {
    const aboutId = randomUUID();
    smtp.trouble = (_, attempt) => (attempt <= 2 ? { at: 'rcpt', code: 451 } : undefined);
    await storeAll(['second@order.example'], { aboutId, version: 2 });
    await storeAll(['first@order.example'], { aboutId, version: 1 });
    await using _delivery = deliver();
    await untilFinished();
    expect(smtp.mails.map(({ recipients }) => recipients[0])).toEqual(['first@order.example', 'second@order.example']);
  });

  it('a CRM that floods a person does not delay the mail of another CRM to the same person', async () => {
    await storeAll(
      Array.from({ length: 200 }, () => 'anna@example.com'),
      { crmId: 'flooding' },
    );
    await storeAll(['anna@example.com'], { crmId: 'other', version: 2 });
    await using _delivery = deliver();
    await eventually(async () =>
      expect((await rows()).find(({ crmId }) => crmId === 'other')).toMatchObject({ state: 'sent' }),
    );
    expect((await pending()).length).toBeGreaterThan(100);
  });

  it('mails of a CRM to one recipient are sent one at a time', async () => {
    let most = 0;
    smtp.trouble = (_, attempt) => {
      most = Math.max(most, attempt - smtp.mails.length);
      return { at: 'rcpt', hangMs: 20 };
    };
    await storeAll(Array.from({ length: 10 }, () => 'same@one.example'));
    await using _delivery = deliver();
    await untilFinished();
    expect(copiesFor('same@one.example')).toHaveLength(10);
    expect(most).toBe(1);
  });
});

describe('a lease', () => {
  it('that expired passes the mail to another holder, and the first can record nothing', async () => {
    await storeAll(['leased@example.com']);
    const [first] = await leaseMails(database, { leaseMs: 1 });
    const second = await eventually(async () => {
      const [mail] = await leaseMails(database);
      expect(mail).toBeDefined();
      return mail!;
    });
    await createOutcomeRecorder(database)(first!, { outcome: 'give-up', reason: 'late' });
    expect(await pending()).toMatchObject([{ lease: second.lease, lastError: null }]);
    await createOutcomeRecorder(database)(second, { outcome: 'sent' });
    expect(await rows()).toMatchObject([{ state: 'sent', content: null, recipient: null }]);
  });

  it('is renewed while the mail is being sent, so that no other holder takes it', async () => {
    smtp.trouble = () => ({ at: 'data', hangMs: 5_000 });
    await storeAll(['slow@example.com']);
    await using _one = deliver({ leaseMs: 2_000 });
    await using _other = deliver({ leaseMs: 2_000 });
    await untilFinished();
    expect(copiesFor('slow@example.com')).toHaveLength(1);
  });

  it('is held by one of many concurrent claimants', async () => {
    await storeAll(addresses(40, 'contended.example'));
    const taken = (await Promise.all(Array.from({ length: 20 }, () => leaseMails(database)))).flat();
    expect(new Set(taken.map(({ id }) => id)).size).toBe(taken.length);
  });
});

describe('mails that are sent at the same time', () => {
  it('are recorded together, except one whose lease is lost', async () => {
    await storeAll(['lost@example.com', 'kept@example.com', 'too@example.com']);
    const mails = await leaseMails(database);
    const lost = mails.find(({ recipient }) => recipient === 'lost@example.com')!;
    const lease = randomUUID();
    await database.kysely.updateTable('mail').set({ lease }).where('id', '=', lost.id).execute();
    const record = createOutcomeRecorder(database);
    expect(await Promise.all(mails.map((mail) => record(mail, { outcome: 'sent' })))).toEqual([[], [], []]);
    expect(await pending()).toMatchObject([{ id: lost.id, lease, attempts: 0, recipient: 'lost@example.com' }]);
    const sent = (await rows()).filter(({ state }) => state === 'sent');
    const finished = {
      lease: null,
      held: false,
      content: null,
      recipient: null,
      attempts: 1,
      lastError: null,
      finishedAt: expect.any(Date) as Date,
    };
    expect(sent).toMatchObject([finished, finished]);
    expect(new Set(sent.map(({ finishedAt }) => finishedAt!.getTime())).size).toBe(1);
    const counted = await database.kysely.selectFrom('recentMail').selectAll().execute();
    expect(new Set(counted.map(({ mailId }) => mailId))).toEqual(new Set(sent.map(({ id }) => id)));
    for (const { mailId, recipientDigest: digest } of counted)
      expect(digest).toEqual(recipientDigest(mails.find(({ id }) => id === mailId)!));
  });

  it('are recorded while the row of one is locked, which is recorded later and sent once', async () => {
    const accepted = Promise.withResolvers<void>();
    onTestFinished(() => accepted.resolve());
    const release = Promise.withResolvers<void>();
    onTestFinished(() => release.resolve());
    let inProgress = 0;
    smtp.trouble = () => {
      inProgress += 1;
      return { at: 'rcpt', hangUntil: accepted.promise };
    };
    await storeAll(['locked@example.com', 'other@example.com']);
    await using _delivery = deliver();
    await eventually(() => expect(inProgress).toBe(2));
    const locked = Promise.withResolvers<void>();
    const holding = database.transaction(async (tx) => {
      await tx.selectFrom('mail').select('id').where('recipient', '=', 'locked@example.com').forUpdate().execute();
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    smtp.trouble = () => undefined;
    accepted.resolve();
    await eventually(async () => expect(await pending()).toMatchObject([{ recipient: 'locked@example.com' }]));
    release.resolve();
    await holding;
    await untilFinished();
    expect(copiesFor('locked@example.com')).toHaveLength(1);
    expect(copiesFor('other@example.com')).toHaveLength(1);
  });
});
