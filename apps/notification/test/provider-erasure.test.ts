import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { eraseMailsOfProvider } from '../src/erasure/erase-provider.ts';
import { type LastMailIntent, type MailIntent, storeMail } from '../src/mail/store-mail.ts';
import {
  crmId,
  processed,
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

it('more mails than a part deletes are deleted', async () => {
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

it('a mail that is written while its provider is deleted waits for the deletion, and is not stored', async () => {
  refuseAll();
  const providerId = randomUUID();
  const release = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const deleting = stack.database.transaction(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`provider ${crmId} ${providerId}`}, 0))`.execute(tx);
    locked.resolve();
    await release.promise;
    await tx.insertInto('erasedProvider').values({ crmId, providerId }).execute();
  });
  await locked.promise;
  const storing = store(mailOf(providerId, 'waitingtext'));
  await eventually(async () => {
    const { rows } =
      await sql`SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database() AND NOT granted`.execute(
        stack.database.kysely,
      );
    expect(rows).toHaveLength(1);
  });
  release.resolve();
  await Promise.all([deleting, storing]);
  expect(await rowsOf(providerId)).toEqual([]);
});
