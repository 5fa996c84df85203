import { waitUntil } from '@scheduling/embedded';
import type { Service } from '@scheduling/stack';
import { eventually, whilePaused } from '@scheduling/testing';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { describe, expect, it } from 'vitest';
import { runAdmin, runPrinted } from '@scheduling/test-stack/command';
import { path, untilServed } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type Practice,
  unique,
} from '@scheduling/test-stack/crm';
import { backUpDatabases } from './back-up-databases.ts';
import { query } from '@scheduling/test-stack/databases';
import { findWord } from './find-word.ts';
import {
  completionMs,
  createCanary,
  crm,
  embed,
  type Erasure,
  everyRead,
  mailsTo,
  past,
  requestErasure,
  smtp,
  stack,
  useErasureStack,
  waitForCompletion,
  waitUntilComplete,
} from './erasure/erasure-stack.ts';

useErasureStack();

describe('a deleted user', () => {
  /**
   * A user with access to a provider, whose every field contains one unique word, and whose verification mail waits.
   */
  async function createCanaryUser(practice: Practice): Promise<{ word: string; email: string; address: string }> {
    const word = unique('canary').replace('-', '');
    const email = `${word}@users.example`;
    const user = {
      reference: `${word}@test`,
      email,
      username: word,
      lastName: `Last ${word}`,
      firstName: word,
      phone: word,
      mobile: word,
    };
    expect((await crm.post('/user', user, { headers: { 'idempotency-key': unique(word) } })).status).toBe(201);
    expect((await crm.post(`${practice.at}/staff`, { reference: user.reference })).status).toBe(201);
    const address = path`/user/${user.reference}`;
    smtp.trouble = (recipient) => (recipient === email ? { at: 'rcpt', code: 451 } : undefined);
    expect((await crm.send('POST', `${address}/verification`)).status).toBe(204);
    const waiting = () =>
      query('notification', `SELECT 1 FROM mail WHERE crm_id = $1 AND recipient = $2`, [crm.crmId, email], stack.info);
    await waitUntil(async () => (await waiting()).length === 1, { what: 'a waiting mail', timeoutMs: 60_000 });
    return { word, email, address };
  }

  const waitUntilErased = (word: string) =>
    waitUntil(async () => (await findWord(stack, word)).length === 0, {
      what: 'the erasure',
      timeoutMs: completionMs,
      intervalMs: 200,
    });

  it('is no longer found anywhere, and gets no mail that was waiting', async () => {
    const practice = await createPractice(crm);
    const { word, email, address } = await createCanaryUser(practice);
    expect(await findWord(stack, word)).not.toEqual([]);
    expect((await crm.delete(address)).status).toBe(204);
    expect((await crm.get(address)).status).toBe(404);
    expect(await everyRead(practice, practice.customer)).not.toContain(word);
    await waitUntilErased(word);
    smtp.trouble = () => undefined;
    expect(mailsTo(email)).toEqual([]);
  }, 120_000);

  it.each(['killed', 'hanging'] as const)(
    'is erased although notification is %s at that moment',
    { timeout: 120_000 },
    async (condition) => {
      const practice = await createPractice(crm);
      const { word, email, address } = await createCanaryUser(practice);
      const pid = (await stack.currentInfo()).pids.notification!;
      if (condition === 'killed') {
        process.kill(pid, 'SIGKILL');
        expect((await crm.delete(address)).status).toBe(204);
      } else {
        await whilePaused([pid], async () => expect((await crm.delete(address)).status).toBe(204));
      }
      await waitUntilErased(word);
      smtp.trouble = () => undefined;
      expect(mailsTo(email)).toEqual([]);
    },
  );

  it('is erased again on request, after all databases were restored from a backup', async () => {
    await waitForCompletion();
    const practice = await createPractice(crm);
    const { word, email, address } = await createCanaryUser(practice);
    const restore = await backUpDatabases(stack);
    const backupTime = new Date();
    await waitForStatus(200, address);
    expect((await crm.delete(address)).status).toBe(204);
    await waitUntilErased(word);
    await restore();
    await waitForStatus(200, address);
    const replay = await runAdmin(
      { SCHEDULING_DATA: stack.dataDir },
      'erasures',
      'replay',
      '--since',
      backupTime.toISOString(),
    );
    expect(replay).toMatchObject({ code: 0, output: expect.stringContaining('✔ Repeating 1 deletions of users.') });
    await waitForStatus(404, address);
    await waitUntilErased(word);
    smtp.trouble = () => undefined;
    expect(mailsTo(email)).toEqual([]);
  }, 120_000);
});

describe('a deleted provider', () => {
  async function deleteProvider(practice: Practice): Promise<void> {
    expect((await crm.delete(practice.at)).status).toBe(204);
    expect((await crm.get(practice.at)).status).toBe(404);
  }

  const replay = (since: Date) =>
    runAdmin({ SCHEDULING_DATA: stack.dataDir }, 'erasures', 'replay', '--since', since.toISOString());

  it('is erased again on request, after the databases of notification and webhook were restored from a backup', async () => {
    const practice = await createPractice(crm);
    const { at, provider, customer } = practice;
    expect((await crm.delete(at + path`/customers/${customer}`)).status).toBe(204);
    const word = unique('canary').replace('-', '');
    const email = `${word}@customers.example`;
    smtp.trouble = (recipient) => (recipient === email ? { at: 'rcpt', code: 451 } : undefined);
    const { appointment: appointmentReference } = await embed(practice, word);
    const change = { description: 'changed' };
    expect((await crm.put(at + path`/appointments/${appointmentReference}`, change)).status).toBe(200);
    const webhook = { url: 'http://127.0.0.1:1/', providerReference: provider, reference: word };
    expect((await crm.post('/webhooks', webhook)).status).toBe(201);
    const left = async () => (await findWord(stack, word)).map((place) => place.replace(/^\d+ rows of /, ''));
    const ofProvider = ['notification.mail', 'webhook.webhook'];
    await waitUntil(async () => (await left()).includes('notification.mail'), {
      what: 'a waiting mail',
      timeoutMs: 60_000,
    });
    const restore = await backUpDatabases(stack, ['notification', 'webhook']);
    const backupTime = new Date();
    const cancelled = await untilServed(() =>
      crm.delete(`${at}/appointments/withoutNotification`, { appointmentReference }),
    );
    expect(cancelled.status).toBe(204);
    await deleteProvider(practice);
    const waitUntilErased = () =>
      waitUntil(async () => (await left()).length === 0, {
        what: 'the erasure',
        timeoutMs: completionMs,
        intervalMs: 200,
      });
    await waitUntilErased();
    await restore();
    await waitUntil(async () => (await crm.get('/webhooks')).status === 200, {
      what: 'the restored webhooks',
      timeoutMs: 60_000,
    });
    expect(await left()).toEqual(expect.arrayContaining(ofProvider));
    expect(await replay(backupTime)).toMatchObject({
      code: 0,
      output: expect.stringContaining('✔ Repeating 1 deletions of providers.') as string,
    });
    await waitUntilErased();
    smtp.trouble = () => undefined;
    expect(mailsTo(email)).toEqual([]);
  }, 120_000);

  it('is listed instead, if a restore of all databases brought it back', async () => {
    const practice = await createPractice(crm);
    expect((await crm.delete(practice.at + path`/customers/${practice.customer}`)).status).toBe(204);
    const restore = await backUpDatabases(stack);
    const backupTime = new Date();
    await waitForStatus(200, practice.at);
    await deleteProvider(practice);
    const unsent = () => query('identity', 'SELECT 1 FROM outbox WHERE sent_at IS NULL', [], stack.info);
    await waitUntil(async () => (await unsent()).length === 0, { what: 'the event', timeoutMs: 60_000 });
    await restore();
    await waitForStatus(200, practice.at);
    const { code, output } = await replay(backupTime);
    expect(output).toContain('✔ Repeating 0 deletions of providers.');
    expect(output).toMatch(
      new RegExp(`! These providers exist again, .* repeat the deletions[^]*${practice.provider}`),
    );
    expect(code).toBe(0);
    await waitForStatus(200, practice.at);
    await deleteProvider(practice);
  }, 120_000);
});

describe('an erasure', () => {
  const victims: Service[] = ['customer', 'calendar', 'notification'];
  /** What the customer service has recorded at each step. */
  const steps = {
    'written down': `SELECT 1 FROM erasure`,
    requested: `SELECT 1 FROM erasure WHERE state <> 'checking'`,
    'confirmed by one': `SELECT 1 FROM erasure JOIN erasure_confirmation ON erasure_id = id`,
  };

  it.each(victims.flatMap((victim) => Object.entries(steps).map(([step, reached]) => ({ victim, step, reached }))))(
    'completes although $victim is killed as soon as it is $step',
    async ({ victim, reached }) => {
      const practice = await createPractice(crm);
      const { word, reference: customerReference } = await createCanary(practice);
      await createParticipation(practice, await createAppointment(practice), { customerReference, message: word });
      await createParticipation(practice, await createAppointment(practice, past), {
        customerReference,
        message: word,
      });
      const remove = () =>
        crm.delete(path`/provider/${practice.provider}/customers/${customerReference}`, undefined, {
          query: { ignoreFutureAppointments: true },
        });
      const before = (await query('customer', reached, [], stack.info)).length;
      const first = remove();
      const isReached = async () => (await query('customer', reached, [], stack.info)).length > before;
      await waitUntil(isReached, { what: 'the step', timeoutMs: 60_000, intervalMs: 1 });
      process.kill((await stack.currentInfo()).pids[victim]!, 'SIGKILL');
      expect([204, 503]).toContain((await first).status);
      // After a 503 the client retries, as usual; 404 means that it is done.
      const gone = async () => [204, 404].includes((await remove()).status);
      await waitUntil(gone, { what: 'the deletion to be accepted', timeoutMs: completionMs, intervalMs: 200 });
      await waitForCompletion();
      expect(await findWord(stack, word)).toEqual([]);
    },
    120_000,
  );

  it.each(victims)(
    'of an address completes although %s is killed as soon as it is requested',
    { timeout: 120_000 },
    async (victim) => {
      const practice = await createPractice(crm);
      const { word, reference: customerReference, email } = await createCanary(practice);
      await createParticipation(practice, await createAppointment(practice), { customerReference, message: word });
      await embed(practice, word, past);
      await embed(practice, word);
      const { id } = await requestErasure(email);
      process.kill((await stack.currentInfo()).pids[victim]!, 'SIGKILL');
      const isComplete = async () => {
        const { status, body } = await crm.get<{ erasure: Erasure }>(path`/erasures/${id}`);
        expect([200, 503]).toContain(status);
        return status === 200 && body.erasure.completedAt !== null;
      };
      await waitUntil(isComplete, { what: 'the erasure of the address', timeoutMs: completionMs, intervalMs: 100 });
      expect(await findWord(stack, word)).toEqual([]);
    },
  );

  it.each(victims)('completes although %s hangs for a while', { timeout: 120_000 }, async (victim) => {
    const practice = await createPractice(crm);
    const { word, reference: customerReference } = await createCanary(practice);
    await createParticipation(practice, await createAppointment(practice, past), { customerReference, message: word });
    const pid = (await stack.currentInfo()).pids[victim]!;
    const remove = () => crm.delete(path`/provider/${practice.provider}/customers/${customerReference}`);
    await whilePaused([pid], async () => {
      const first = await remove();
      expect([204, 503]).toContain(first.status);
      // Other work on the machine may delay any of them.
      await eventually(async () => expect((await remove()).durationMs).toBeLessThan(3_000));
    });
    await waitUntil(async () => [204, 404].includes((await remove()).status), {
      what: 'the deletion',
      timeoutMs: completionMs,
      intervalMs: 200,
    });
    await waitForCompletion();
    expect(await findWord(stack, word)).toEqual([]);
  });

  it('is repeated on request, after restoring calendar from a backup brought the person back', async () => {
    const practice = await createPractice(crm);
    const { word, reference: customerReference } = await createCanary(practice);
    await createParticipation(practice, await createAppointment(practice), { customerReference, message: word });
    const kept = await query<{ id: string }>(
      'calendar',
      'SELECT * FROM customer WHERE reference = $1',
      [customerReference],
      stack.info,
    );
    const { id } = kept[0]!;
    const startedAt = new Date();
    const deletion = await crm.delete(path`/provider/${practice.provider}/customers/${customerReference}`, undefined, {
      query: { ignoreFutureAppointments: true },
    });
    expect(deletion.status).toBe(204);
    await waitForCompletion();

    await query(
      'calendar',
      `UPDATE customer SET erased_at = NULL, reference = $2, user_name = $2 WHERE id = $1`,
      [id, word],
      stack.info,
    );
    expect(await findWord(stack, word)).toEqual(['1 rows of calendar.customer']);
    const replay = await runAdmin(
      { SCHEDULING_DATA: stack.dataDir },
      'erasures',
      'replay',
      '--since',
      startedAt.toISOString(),
    );
    expect(replay).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^✔ Repeating 1 erasures, 0 of them found only in events/),
    });
    await waitForCompletion();
    expect(await findWord(stack, word)).toEqual([]);
  }, 120_000);

  it('is repeated for a person who was erased after the backup, after all databases were restored from it', async () => {
    await waitForCompletion();
    const practice = await createPractice(crm);
    const word = unique('canary').replace('-', '');
    const [customerReference, email] = [`${word}@test`, `${word}@customers.example`];
    const customer = {
      customerReference,
      providerReference: practice.provider,
      userName: `Name ${word}`,
      email,
      language: 'en',
    };
    expect(
      (await crm.post(`${practice.at}/customers`, customer, { headers: { 'idempotency-key': unique('key') } })).status,
    ).toBe(201);
    await createParticipation(practice, await createAppointment(practice), {
      customerReference,
      message: `Message ${word}`,
    });
    await waitUntil(() => mailsTo(email).length === 1, { what: 'the confirmation', timeoutMs: 60_000 });

    const other = unique('canary').replace('-', '');
    const embedded = await embed(practice, other);
    const asOperator = (...args: string[]) =>
      runAdmin({ SCHEDULING_DATA: stack.dataDir, OPERATOR_NAME: 'jane' }, ...args);
    const key = (await asOperator('key', 'create', crm.crmId)).output.split('\n')[0]!;
    const prefix = key.slice(0, 12);
    const withKey = async () =>
      (await crm.get(path`/provider/${practice.provider}`, { headers: { 'x-service-client-id': key } })).status;

    const restore = await backUpDatabases(stack);
    const backupTime = new Date();
    const address = path`/provider/${practice.provider}/customers/${customerReference}`;
    await waitForStatus(200, address);
    expect((await crm.delete(address, undefined, { query: { ignoreFutureAppointments: true } })).status).toBe(204);
    await requestErasure(`${other}@customers.example`);
    await waitForCompletion();
    for (const each of [word, other]) expect(await findWord(stack, each)).toEqual([]);
    await asOperator('key', 'revoke', prefix);

    await restore();
    await waitForStatus(200, address);
    for (const each of [word, other]) expect(await findWord(stack, each)).not.toEqual([]);
    const keys = () => query('customer', 'SELECT 1 FROM idempotency_key WHERE crm_id = $1', [crm.crmId], stack.info);
    expect(await keys()).toHaveLength(1);

    await waitUntil(async () => (await withKey()) === 200, { what: 'the revoked key to be back', timeoutMs: 60_000 });

    const replay = await runPrinted(
      { SCHEDULING_DATA: stack.dataDir, OPERATOR_NAME: 'jane', SINCE: backupTime.toISOString() },
      printedCommands('repeat revocations and erasures'),
    );
    expect(replay).toEqual({ code: 0, output: expect.stringContaining('✔ Revoked 1 key again.') as string });
    expect(replay.output).toMatch(/^✔ Repeating 3 erasures, 3 of them found only in events/m);
    await waitForCompletion();
    await waitForStatus(204, address);
    for (const each of [word, other]) expect(await findWord(stack, each)).toEqual([]);
    const { body } = await crm.get<{ participations: unknown[] }[]>(`${practice.at}/appointments`);
    expect(body).toMatchObject([{ participations: [] }, { reference: embedded.appointment, participations: [] }]);
    expect(await keys()).toEqual([]);
    await waitUntil(async () => (await withKey()) === 401, { what: 'the key to be refused', timeoutMs: 60_000 });
    const { output: audited } = await asOperator('audit', '--since', backupTime.toISOString());
    expect(audited).toMatch(new RegExp(`jane +erasures.replay[^]* jane +key-revocations.replay +\\S+ ${prefix}`));
  }, 120_000);

  it('leaves no active booking when bookings run concurrently', async () => {
    const practice = await createPractice(crm);
    for (let round = 0; round < 10; round += 1) {
      const { word, reference: customerReference } = await createCanary(practice);
      const appointments = await Promise.all(
        Array.from({ length: 5 }, () => createAppointment(practice, { capacity: 100 })),
      );
      const bookings = Array.from({ length: 40 }, (_, index) => {
        const booking = {
          reference: unique(word),
          appointmentReference: appointments[index % 5],
          customerReference,
          state: 'BOOKED',
        };
        return untilServed(() => crm.post(`${practice.at}/participations`, booking));
      });
      const deletions = Array.from({ length: 10 }, () =>
        untilServed(() =>
          crm.delete(path`/provider/${practice.provider}/customers/${customerReference}`, undefined, {
            query: { ignoreFutureAppointments: true },
          }),
        ),
      );
      for (const { status } of await Promise.all(bookings)) expect([201, 404]).toContain(status);
      for (const { status } of await Promise.all(deletions)) expect([204, 404]).toContain(status);
      expect(await everyRead(practice, customerReference)).not.toContain(word);
    }
    await waitForCompletion();
  }, 120_000);
});

describe('an erased address', () => {
  it('may be that of more people than are erased at once', async () => {
    const practice = await createPractice(crm);
    const word = unique('canary').replace('-', '');
    const email = `${word}@customers.example`;
    // Calendar names 100 of those who are embedded, of whom 20 are erased in a turn, as are 20 customers.
    const people = Array.from({ length: 101 }, (_, index) => ({
      customerReference: `${word}-${index}@test`,
      providerReference: practice.provider,
      userName: word,
      email,
    }));
    const created = await Promise.all(
      people.slice(0, 21).map((person) => untilServed(() => crm.post(`${practice.at}/customers`, person))),
    );
    for (const { status } of created) expect(status).toBe(201);
    const participations = people.map(({ customerReference: reference }) => ({
      reference,
      name: word,
      email,
      state: 'BOOKED',
    }));
    await embed(practice, word, { participations, capacity: people.length });
    await waitUntilComplete((await requestErasure(email)).id);
    expect(await findWord(stack, word)).toEqual([]);
  }, 120_000);

  it('does not wait for those of another CRM, however many', async () => {
    const other = await createPractice(await createCrm({}, stack.info));
    const [addressCount, perAddress] = [16, 8];
    const emails = Array.from({ length: addressCount }, () => `${unique('many')}@customers.example`);
    for (const email of emails) {
      const people = Array.from({ length: perAddress }, () => ({
        customerReference: `${unique('many')}@test`,
        providerReference: other.provider,
        userName: 'Many',
        email,
      }));
      await Promise.all(people.map((person) => untilServed(() => other.crm.post(`${other.at}/customers`, person))));
    }
    const { email } = await createCanary(await createPractice(crm));
    for (const each of emails) await requestErasure(each, other.crm);
    await waitUntilComplete((await requestErasure(email)).id);
    const open = await query(
      'customer',
      `SELECT 1 FROM erasure WHERE crm_id = $1 AND state = 'checking' AND subject = 'address'`,
      [other.crm.crmId],
      stack.info,
    );
    expect(open.length).toBeGreaterThan(addressCount / 2);
    await waitForCompletion();
  }, 120_000);
});

/** Waits until the services can use their databases again. */
async function waitForStatus(status: number, address: string): Promise<void> {
  await waitUntil(async () => (await crm.get(address)).status === status, {
    what: `${status} for ${address}`,
    timeoutMs: 60_000,
  });
}
