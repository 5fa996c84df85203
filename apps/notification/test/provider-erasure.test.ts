import { events } from '@scheduling/events';
import { callFunction } from '@scheduling/postgres';
import type { ProviderMailTemplate } from '@scheduling/runtime';
import { eventually } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { up as fillOrganizers } from '../src/db/migrations/0011-organizers-of-earlier-versions.ts';
import { eraseMailsOfProvider } from '../src/erasure/erase-provider.ts';
import { type LastMailIntent, type MailIntent, storeMail } from '../src/mail/store-mail.ts';
import {
  crmId,
  processed,
  providerReference,
  publishEvent,
  startNotification,
  type NotificationUnderTest,
} from './notification-under-test.ts';

let stack: NotificationUnderTest;
beforeAll(async () => {
  stack = await startNotification({
    timings: { firstRetryMs: 50, pollMs: 50, longestRetryMs: 100, firstPauseMs: 20, longestPauseMs: 50 },
  });
}, 180_000);
beforeEach(() => acceptAll());
afterAll(() => stack?.[Symbol.asyncDispose]());

const acceptAll = () => {
  stack.smtp.trouble = () => undefined;
};
/** All mails wait: the mail server accepts none at the moment. */
const refuseAll = () => {
  stack.smtp.trouble = () => ({ at: 'rcpt', code: 451 });
};

function mailOf(providerId: string, text: string, fields: Partial<MailIntent> = {}): MailIntent {
  const aboutId = randomUUID();
  return {
    crmId,
    eventId: randomUUID(),
    aboutId,
    version: 1,
    template: 'booking-confirmed',
    customerId: aboutId,
    providerId,
    organizer: { address: `${text}@studio.example`, eventEnd: new Date(Date.now() + 86_400_000) },
    content: {
      from: { name: text, address: 'hello@service.example' },
      to: { name: text, address: `${text}@customers.example` },
      language: 'en',
      subject: text,
      text,
      html: text,
      calendars: [],
    },
    sandbox: false,
    ...fields,
  };
}

const store = (intent: MailIntent | LastMailIntent) => stack.database.transaction((tx) => storeMail(tx, intent));
const rowsOf = (providerId: string) =>
  stack.database.kysely.selectFrom('mail').selectAll().where('providerId', '=', providerId).orderBy('id').execute();

/** A mail that was sent, and one that the sandbox keeps. */
async function fillSent(providerId: string, text: string): Promise<void> {
  await store(mailOf(providerId, text));
  await store(mailOf(providerId, text, { sandbox: true }));
  await eventually(async () => expect((await rowsOf(providerId)).map(({ state }) => state)).toEqual(['sent', 'sent']));
}

/** Whatever else notification can have of a provider. */
async function fillWaiting(providerId: string, text: string): Promise<void> {
  await store(mailOf(providerId, text));
  await store(mailOf(providerId, text, { template: 'provider-booked', userId: randomUUID() }));
  const row = { crmId, version: 1, providerId, actor: text, requestId: text, dueAt: new Date('2099-01-01') };
  await stack.database.kysely
    .insertInto('unwrittenMail')
    .values({
      ...row,
      eventId: randomUUID(),
      aboutId: randomUUID(),
      template: 'booking-moved',
      customerId: randomUUID(),
    })
    .execute();
  await stack.database.kysely
    .insertInto('providerNotice')
    .values([
      { ...row, eventId: randomUUID(), aboutId: randomUUID(), template: 'provider-booked', recipient: 'PROVIDER' },
      {
        ...row,
        eventId: randomUUID(),
        aboutId: randomUUID(),
        template: 'provider-booked',
        recipient: 'PROVIDER',
        state: 'listed',
        listId: randomUUID(),
      },
    ])
    .execute();
}

/** The tables in which a row has the text. */
async function tablesWith(text: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`.execute(
    stack.database.kysely,
  );
  const found = await Promise.all(
    rows.map(async ({ name }) => {
      const { rows: some } = await sql`
        SELECT FROM ${sql.table(name)} AS it WHERE strpos(it::text, ${text}) > 0 LIMIT 1`.execute(
        stack.database.kysely,
      );
      return some.length > 0 ? [name] : [];
    }),
  );
  return found.flat().sort();
}

/** One that is just being sent is deleted when that is over. */
const expectNothingOf = (text: string) => eventually(async () => expect(await tablesWith(text)).toEqual([]));

async function publishDeletion(providerId: string): Promise<void> {
  const payload = events.providerDeleted.encode({ crmId, providerId });
  const id = await publishEvent(stack, randomUUID(), events.providerDeleted, payload);
  await processed(stack, events.providerDeleted, id);
}

const everything = ['event_organizer', 'mail', 'provider_notice', 'sandbox_mail', 'unwritten_mail'];

it('nothing is left of the mails of a deleted provider, however often the event arrives, and those of others stay', async () => {
  const [deleted, other] = [randomUUID(), randomUUID()];
  await fillSent(deleted, 'deletedtext');
  await fillSent(other, 'othertext');
  refuseAll();
  await fillWaiting(deleted, 'deletedtext');
  await fillWaiting(other, 'othertext');
  expect(await tablesWith('deletedtext')).toEqual(everything);
  const kept = await tablesWith('othertext');
  for (let times = 0; times < 2; times += 1) await publishDeletion(deleted);
  await expectNothingOf('deletedtext');
  expect(await tablesWith(deleted)).toEqual(['erased_provider']);
  expect(await tablesWith('othertext')).toEqual(kept);
  const accepted = stack.smtp.mails.length;
  acceptAll();
  await eventually(async () => expect((await rowsOf(other)).map(({ state }) => state)).not.toContain('pending'));
  // Of the other provider only.
  expect(stack.smtp.mails.slice(accepted).map(({ parsed }) => parsed.subject)).toEqual(['othertext', 'othertext']);
});

it('the organizer of an event that an earlier version has stored is found by the mails about it', async () => {
  const providerId = randomUUID();
  const mail = mailOf(providerId, 'earliertext');
  await store(mail);
  await stack.database.kysely
    .updateTable('eventOrganizer')
    .set({ providerId: null })
    .where('participationId', '=', mail.aboutId)
    .execute();
  await publishDeletion(providerId);
  await expectNothingOf('earliertext');
});

it('the mails of a provider that exists again after a restore of identity stay, and it gets new ones', async () => {
  const { provider } = await stack.identity.getProvider({
    crmId,
    key: { $case: 'reference', value: providerReference },
  });
  const providerId = provider!.id;
  await fillSent(providerId, 'restoredtext');
  const kept = await tablesWith('restoredtext');
  await publishDeletion(providerId);
  expect(await tablesWith('restoredtext')).toEqual(kept);
  await store(mailOf(providerId, 'newtext'));
  expect(await tablesWith('newtext')).toContain('mail');
});

it('a call deletes only as much as it has time for, and the next one goes on', async () => {
  const providerId = randomUUID();
  await sql`
    INSERT INTO provider_notice (crm_id, event_id, about_id, version, template, provider_id, actor, recipient, request_id, due_at)
    SELECT ${crmId}, gen_random_uuid(), gen_random_uuid(), 1, 'provider-booked', ${providerId}::uuid, 'longtext', 'PROVIDER', 'x', '2099-01-01'
      FROM generate_series(1, 700)`.execute(stack.database.kysely);
  await sql`
    INSERT INTO event_organizer (crm_id, participation_id, address, keep_until, provider_id)
    SELECT ${crmId}, gen_random_uuid(), 'longtext', '2099-01-01', ${providerId}::uuid
      FROM generate_series(1, 700)`.execute(stack.database.kysely);
  const erase = () => eraseMailsOfProvider(stack.database, { crmId, providerId }, 0);
  const answers = [await erase(), await erase(), await erase(), await erase(), await erase()];
  expect(answers).toEqual([false, false, false, false, true]);
  expect(await tablesWith('longtext')).toEqual([]);
});

it('more mails than a batch has are deleted', async () => {
  const providerId = randomUUID();
  refuseAll();
  await store(mailOf(providerId, 'manytext'));
  await sql`
    INSERT INTO mail (crm_id, event_id, about_id, version, template, provider_id, request_id, state, finished_at)
    SELECT ${crmId}, gen_random_uuid(), gen_random_uuid(), 1, 'booking-confirmed', ${providerId}::uuid, 'manytext', 'sent', now()
      FROM generate_series(1, 1200)`.execute(stack.database.kysely);
  await publishDeletion(providerId);
  await expectNothingOf('manytext');
});

it('no mail of a deleted provider is stored meanwhile or afterwards, but the last one to an erased customer', async () => {
  refuseAll();
  for (let round = 0; round < 10; round += 1) {
    const providerId = randomUUID();
    const storeOne = () => store(mailOf(providerId, 'racetext'));
    await Promise.all([
      storeOne(),
      storeOne(),
      eraseMailsOfProvider(stack.database, { crmId, providerId }),
      storeOne(),
    ]);
    await storeOne();
    await eventually(async () => expect(await rowsOf(providerId)).toEqual([]));
    const last: LastMailIntent = {
      ...mailOf(providerId, 'lasttext'),
      template: 'removed-by-deletion',
      customerId: randomUUID(),
      erasureId: randomUUID(),
      expiresAt: new Date(Date.now() + 60_000),
    };
    await store(last);
    await eraseMailsOfProvider(stack.database, { crmId, providerId });
    expect(await rowsOf(providerId)).toMatchObject([{ erasureId: last.erasureId }]);
  }
});

/**
 * Stores something in the middle of the deletion of its provider: it waits for the lock, and the deletion is committed
 * then. What it answers is returned.
 */
async function storeDuringDeletion<Answer>(providerId: string, storing: () => Promise<Answer>): Promise<Answer> {
  const release = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const deleting = stack.database.transaction(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`provider ${crmId} ${providerId}`}, 0))`.execute(tx);
    locked.resolve();
    await release.promise;
    await tx.insertInto('erasedProvider').values({ crmId, providerId }).execute();
  });
  await locked.promise;
  const stored = storing();
  await eventually(async () => {
    const { rows } =
      await sql`SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database() AND NOT granted`.execute(
        stack.database.kysely,
      );
    expect(rows).toHaveLength(1);
  });
  release.resolve();
  await deleting;
  return stored;
}

it('a mail that is written while its provider is deleted waits for the deletion, and is not stored', async () => {
  refuseAll();
  const providerId = randomUUID();
  await storeDuringDeletion(providerId, () => store(mailOf(providerId, 'waitingtext')));
  expect(await rowsOf(providerId)).toEqual([]);
});

const call = (name: string, request: { crmId: string }) =>
  callFunction(stack.database.kysely, { name, request, locks: '' });
const markErased = (providerId: string) =>
  stack.database.kysely.insertInto('erasedProvider').values({ crmId, providerId }).execute();

/** An event about a participation, as functions take it. */
function changeOf(providerId: string, fields: object = {}) {
  return {
    crmId,
    eventId: randomUUID(),
    aboutId: randomUUID(),
    version: 1,
    customerId: randomUUID(),
    providerId,
    actor: 'service',
    requestId: 'late',
    ...fields,
  };
}

it('what arrives after the deletion of the provider is not stored', async () => {
  refuseAll();
  const providerId = randomUUID();
  await markErased(providerId);
  const participation = { aboutId: randomUUID(), customerId: randomUUID() };
  const limits = { maxWaiting: 5, urgentTemplates: [] };
  for (let version = 1; version <= 9; version += 1) {
    const fields = { ...participation, ...limits, version, template: 'booking-moved' };
    await call('store_unwritten_mail', changeOf(providerId, fields));
  }
  const notice = { template: 'provider-booked', recipient: 'PROVIDER', participationId: randomUUID() };
  await call('store_provider_notice', changeOf(providerId, notice));
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await call('store_daily_notice', changeOf(providerId, { day: tomorrow.slice(0, 10), expiresAt: tomorrow }));
  expect(await tablesWith(providerId)).toEqual(['erased_provider']);
});

it.each([
  ['store_unwritten_mail', { template: 'booking-moved', maxWaiting: 5, urgentTemplates: [] }],
  ['store_provider_notice', { template: 'provider-booked', recipient: 'PROVIDER', participationId: randomUUID() }],
  ['store_daily_notice', { day: '2099-01-01', expiresAt: '2099-01-01T12:00:00Z' }],
])('%s waits for a deletion of the provider, and stores nothing', async (name, fields) => {
  const providerId = randomUUID();
  await storeDuringDeletion(providerId, () => call(name, changeOf(providerId, fields)));
  expect(await tablesWith(providerId)).toEqual(['erased_provider']);
});

it('a mail of a deleted provider that need not be written leaves no record', async () => {
  const providerId = randomUUID();
  const row = { ...changeOf(providerId), template: 'booking-moved', dueAt: new Date('2099-01-01') };
  const { id } = await stack.database.kysely
    .insertInto('unwrittenMail')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  await markErased(providerId);
  await sql`SELECT supersede_unwritten_mails(${crmId}, ARRAY[${id}::uuid])`.execute(stack.database.kysely);
  expect(await tablesWith(providerId)).toEqual(['erased_provider']);
});

/** A mail to a provider that is being written. */
function insertNotice(providerId: string, template: ProviderMailTemplate) {
  return stack.database.kysely
    .insertInto('providerNotice')
    .values({
      ...changeOf(providerId),
      customerId: null,
      recipient: 'PROVIDER',
      template,
      lease: randomUUID(),
      dueAt: new Date('2099-01-01'),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

it.each([
  { name: 'store_daily_list', template: 'provider-day' as const },
  { name: 'store_provider_mail', template: 'provider-booked' as const },
  { name: 'store_provider_list', template: 'provider-list' as const },
])('$name waits for a deletion of the provider before it stores anything', async ({ name, template }) => {
  const providerId = randomUUID();
  const notice = await insertNotice(providerId, template);
  const { id, lease, eventId, aboutId } = notice;
  const mail = {
    ...changeOf(providerId, { eventId, aboutId, template }),
    customerId: undefined,
    content: mailOf(providerId, 'x').content,
  };
  const recipientDigest = randomBytes(32).toString('hex');
  const request = {
    crmId,
    id,
    lease,
    mail: { ...mail, id },
    persons: [{ customerId: randomUUID(), participationId: randomUUID() }],
    recipientId: providerId,
    recipientDigest,
    quota: 1,
    windowSeconds: 3_600,
  };
  // The quota is used up, so a mail of its own becomes an entry of a list.
  await sql`
    INSERT INTO provider_mail_count (crm_id, recipient_digest, until, mails)
    SELECT ${crmId}, decode(${recipientDigest}, 'hex'), date_bin('1 hour', now(), 'epoch') + hours * interval '1 hour', 1
      FROM generate_series(1, 2) AS hours`.execute(stack.database.kysely);
  expect(await storeDuringDeletion(providerId, () => call(name, request))).toBe(false);
  // The deletion removes it. Nothing was added of which it may know nothing.
  const rows = await stack.database.kysely
    .selectFrom('providerNotice')
    .selectAll()
    .where('providerId', '=', providerId)
    .execute();
  expect(rows).toEqual([notice]);
});

it('the erasure of a person has no list of a deleted provider written again', async () => {
  refuseAll();
  for (const template of ['provider-day', 'provider-list'] as const) {
    const providerId = randomUUID();
    const [aboutId, customerId] = [randomUUID(), randomUUID()];
    await store(mailOf(providerId, 'listtext', { template, aboutId, customerId: undefined, organizer: undefined }));
    const [list] = await rowsOf(providerId);
    await stack.database.kysely
      .insertInto('providerNotice')
      .values({
        ...changeOf(providerId, { customerId }),
        customerId,
        template: 'provider-booked',
        recipient: 'PROVIDER',
        state: 'listed',
        listId: list!.id,
        day: '2099-01-01',
      })
      .execute();
    await markErased(providerId);
    await stack.database.kysely.insertInto('erasedCustomer').values({ crmId, customerId }).execute();
    expect(await tablesWith(providerId)).toEqual(['erased_provider']);
  }
});

describe('the last mail to an erased customer of a deleted provider', () => {
  const lastMailOf = (providerId: string): LastMailIntent => ({
    ...mailOf(providerId, 'lasttext'),
    template: 'removed-by-deletion',
    customerId: randomUUID(),
    erasureId: randomUUID(),
    expiresAt: new Date(Date.now() + 60_000),
    organizer: undefined,
  });
  async function confirmations(): Promise<string[]> {
    const rows = await stack.database.kysely
      .selectFrom('outbox')
      .select('data')
      .where('subject', '=', events.notificationErasureConfirmed.subject)
      .execute();
    return rows.map(({ data }) => events.notificationErasureConfirmed.fromJson(data!).erasureId);
  }

  it.each(['sent', 'given up'])('leaves nothing when it is %s', async (end) => {
    refuseAll();
    const [deleted, other] = [randomUUID(), randomUUID()];
    const [last, otherLast] = [lastMailOf(deleted), lastMailOf(other)];
    await store(last);
    await store(otherLast);
    await publishDeletion(deleted);
    expect(await rowsOf(deleted)).toHaveLength(1);
    stack.smtp.trouble = () => (end === 'sent' ? undefined : { at: 'rcpt', code: 550 });
    await eventually(async () => expect(await rowsOf(deleted)).toEqual([]));
    expect(await confirmations()).toContain(last.erasureId);
    const state = end === 'sent' ? 'sent' : 'failed';
    await eventually(async () => expect(await rowsOf(other)).toMatchObject([{ state }]));
  });

  it('is deleted with the provider if it has ended before', async () => {
    const providerId = randomUUID();
    await store(lastMailOf(providerId));
    await eventually(async () => expect(await rowsOf(providerId)).toMatchObject([{ state: 'sent' }]));
    await publishDeletion(providerId);
    expect(await tablesWith(providerId)).toEqual(['erased_provider']);
  });
});

describe('the organizer of an event that an earlier version has stored', () => {
  const known = (participationId: string) =>
    stack.database.kysely
      .selectFrom('eventOrganizer')
      .select(['providerId', 'keepUntil'])
      .where('participationId', '=', participationId)
      .executeTakeFirstOrThrow();
  /** As the earlier version has stored it. */
  async function forget(participationId: string): Promise<Date> {
    await stack.database.kysely
      .updateTable('eventOrganizer')
      .set({ providerId: null })
      .where('participationId', '=', participationId)
      .execute();
    return (await known(participationId)).keepUntil;
  }

  it('gets its provider with the next mail, which keeps the later end', async () => {
    const providerId = randomUUID();
    const mail = mailOf(providerId, 'nexttext');
    await store(mail);
    const keepUntil = await forget(mail.aboutId);
    const earlier = { address: 'nexttext@studio.example', eventEnd: new Date(Date.now() + 3_600_000) };
    await store({ ...mail, eventId: randomUUID(), version: 2, organizer: earlier });
    expect(await known(mail.aboutId)).toEqual({ providerId, keepUntil });
  });

  it('gets it from the mails about it in the migration, each in its batch', async () => {
    const providerId = randomUUID();
    const mail = mailOf(providerId, 'migratedtext');
    await store(mail);
    await forget(mail.aboutId);
    await sql`
      INSERT INTO event_organizer (crm_id, participation_id, address, keep_until)
      SELECT crm, gen_random_uuid(), 'without@mails.example', now() + interval '1 day'
        FROM unnest(ARRAY['a', ${crmId}, 'z']) AS crm CROSS JOIN generate_series(1, 1100)`.execute(
      stack.database.kysely,
    );
    await fillOrganizers(stack.database.kysely as Kysely<unknown>);
    expect(await known(mail.aboutId)).toMatchObject({ providerId });
    const { rows } =
      await sql`SELECT FROM event_organizer WHERE address = 'without@mails.example' AND provider_id IS NOT NULL`.execute(
        stack.database.kysely,
      );
    expect(rows).toEqual([]);
    await publishDeletion(providerId);
    await expectNothingOf('migratedtext');
  });
});

it('the entries of one provider are found without reading those of the whole CRM', async () => {
  const { kysely } = stack.database;
  await sql`
    INSERT INTO provider_notice (crm_id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, state, list_id)
    SELECT ${crmId}, gen_random_uuid(), 'PROVIDER', 'provider-day', gen_random_uuid(), 0, md5((n % 100)::text)::uuid, 'service', 'many', 'listed',
           gen_random_uuid()
      FROM generate_series(1, 5000) AS n`.execute(kysely);
  await sql`ANALYZE provider_notice`.execute(kysely);
  const { rows } = await sql<{ 'QUERY PLAN': string }>`
    EXPLAIN DELETE FROM provider_notice WHERE crm_id = ${crmId} AND provider_id = md5('1')::uuid`.execute(kysely);
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('provider_notice_provider');
});
