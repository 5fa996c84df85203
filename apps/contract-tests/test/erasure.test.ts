import { waitUntil } from '@scheduling/embedded';
import type { Service } from '@scheduling/stack';
import { eventually, startTestSmtp, type TestSmtp, whilePaused } from '@scheduling/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runAdmin } from '@scheduling/test-stack/command';
import { path, untilServed } from '@scheduling/test-stack/client';
import { type Appointment, readAppointment } from './answers.ts';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  newAppointment,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { backUpDatabases } from './back-up-databases.ts';
import { query } from '@scheduling/test-stack/databases';
import { readFeed } from './feed.ts';
import { findWord } from './find-word.ts';
import { startTestStack, type TestStack } from '@scheduling/test-stack/start-test-stack';
import { waitForErasures } from './wait-for-erasures.ts';

/** Promised by the interface: complete within a minute after everything runs again. */
const completionMs = 60_000;
const past = { start: '2020-03-03T09:00', end: '2020-03-03T10:00' };

const resources = new AsyncDisposableStack();
let smtp: TestSmtp;
let stack: TestStack;
let crm: TestCrm;
let probe: Practice;

beforeAll(async () => {
  smtp = resources.use(await startTestSmtp());
  stack = resources.use(await startTestStack({ SMTP_URL: smtp.url, LOG_LEVEL: 'debug' }));
  crm = await createCrm({}, stack.info);
  probe = await createPractice(crm);
}, 400_000);
afterAll(() => resources.disposeAsync());

/** Waits until everything that an earlier test killed is running again. */
beforeEach(async () => {
  const works = async () => {
    const answers = await Promise.all([
      crm.get(`${probe.at}/appointments`),
      crm.get(path`/provider/${probe.provider}/customers/${probe.customer}`),
    ]);
    return answers.every(({ status }) => status === 200);
  };
  await waitUntil(works, { what: 'the services to answer', timeoutMs: 60_000, intervalMs: 100 });
});

/** A person whose every field contains one unique word. */
async function createCanary(practice: Practice): Promise<{ word: string; reference: string; email: string }> {
  const word = unique('canary').replace('-', '');
  const reference = `${word}@test`;
  const email = `${word}@customers.example`;
  const answer = await crm.post(`${practice.at}/customers`, {
    customerReference: reference,
    providerReference: practice.provider,
    userName: `Name ${word}`,
    email,
    mobile: `+49 ${word}`,
    note: `Note ${word}`,
    language: 'en',
  });
  expect(answer.status).toBe(201);
  return { word, reference, email };
}

const mailsTo = (email: string) => smtp.mails.filter(({ recipients }) => recipients.includes(email));

const waitForCompletion = () => waitForErasures(stack.info, completionMs);

async function everyRead(practice: Practice, customerReference: string): Promise<string> {
  const answers = await Promise.all([
    crm.get(path`/provider/${practice.provider}/customers/${customerReference}`),
    crm.get(`${practice.at}/appointments`, { query: { includeArchived: true } }),
    crm.get(`${practice.at}/appointments`, { query: { includeArchived: true, limit: 100 } }),
    crm.get(path`/provider/${practice.provider}/resource/${practice.resource}/timeslots`, {
      query: { from: '2019-01-01T00:00', to: '2039-01-01T00:00' },
    }),
    crm.get(`${practice.at}/staff`),
    crm.get(path`/user/${practice.owner}`),
    crm.get(path`/account/${practice.account}`),
    crm.get(path`/provider/${practice.provider}`),
  ]);
  return [...answers.map(({ text }) => text), JSON.stringify(await readFeed(crm, { limit: '1000' }))].join('\n');
}

describe('a deleted customer', () => {
  it('is no longer found anywhere, and the booking history is kept', async () => {
    const practice = await createPractice(crm);
    const { word, reference: customerReference, email } = await createCanary(practice);
    const book = (appointment: string, fields: Record<string, unknown> = {}) =>
      createParticipation(practice, appointment, {
        customerReference,
        reference: unique(word),
        message: `Message ${word}`,
        ...fields,
      });
    const [bygone, coming, requested] = [
      await createAppointment(practice, past),
      await createAppointment(practice),
      await createAppointment(practice),
    ];
    await crm.post(`${practice.at}/timeslots`, {
      timeslots: [
        {
          resourceReference: practice.resource,
          start: '2031-03-03T08:00',
          end: '2031-03-03T12:00',
          raster: 60,
          defaultCapacity: 1,
          defaultAcceptBookings: true,
          state: 'BOOKABLE',
        },
      ],
    });
    await book(bygone);
    await waitUntil(() => mailsTo(email).length === 1, { what: 'the first mail', timeoutMs: 60_000 });
    const mails = (state: string) =>
      query('notification', `SELECT 1 FROM mail WHERE crm_id = $1 AND state = $2`, [crm.crmId, state], stack.info).then(
        (rows) => rows.length,
      );
    smtp.trouble = (recipient) => (recipient === email ? { at: 'rcpt', code: 550 } : undefined);
    await book(coming);
    await waitUntil(async () => (await mails('failed')) === 1, { what: 'a refused mail', timeoutMs: 60_000 });
    smtp.trouble = (recipient) => (recipient === email ? { at: 'rcpt', code: 451 } : undefined);
    await book(requested, { state: 'REQUESTED' });
    await waitUntil(async () => (await mails('pending')) === 1, { what: 'a pending mail', timeoutMs: 60_000 });
    expect(await findWord(stack, word)).not.toEqual([]);

    expect((await crm.delete(path`/provider/${practice.provider}/customers/${customerReference}`)).status).toBe(409);
    const deletion = await crm.delete(path`/provider/${practice.provider}/customers/${customerReference}`, undefined, {
      query: { ignoreFutureAppointments: '' },
    });
    expect(deletion.status).toBe(204);
    expect(await everyRead(practice, customerReference)).not.toContain(word);

    // The pending mail is deleted with the erasure; only then may the server accept mails again.
    const waiting = () =>
      query(
        'notification',
        `SELECT 1 FROM mail WHERE crm_id = $1 AND state = 'pending' AND erasure_id IS NULL`,
        [crm.crmId],
        stack.info,
      );
    await waitUntil(async () => (await waiting()).length === 0, {
      what: 'the pending mail to be erased',
      timeoutMs: 60_000,
    });
    smtp.trouble = () => undefined;
    await waitForCompletion();
    expect(await findWord(stack, word)).toEqual([]);
    expect(await everyRead(practice, customerReference)).not.toContain(word);

    // The first mail, and one about each future appointment; the pending one was never sent.
    expect(mailsTo(email)).toHaveLength(3);
    const { body: appointments } = await crm.get<{ reference: string; participations: unknown[] }[]>(
      `${practice.at}/appointments`,
      { query: { includeArchived: true } },
    );
    const participationsOf = (appointment: string) =>
      appointments.find((each) => each.reference === appointment)!.participations;
    expect(participationsOf(bygone)).toEqual([
      {
        reference: expect.stringMatching(/^anonymous-/),
        appointmentReference: bygone,
        customerReference: null,
        name: '',
        email: null,
        mobile: null,
        note: null,
        state: 'BOOKED',
        messages: null,
      },
    ]);
    expect(participationsOf(coming)).toEqual([]);
    expect(participationsOf(requested)).toEqual([]);
  }, 120_000);

  it('gets no mail if the CRM wants none, or if there were no future bookings', async () => {
    const quiet = await createCrm({ notifyOnCustomerDeletion: false }, stack.info);
    for (const [owner, appointment] of [
      [quiet, {}],
      [crm, past],
    ] as const) {
      const practice = await createPractice(owner);
      await createParticipation(practice, await createAppointment(practice, appointment), { sendMails: false });
      await waitUntil(() => mailsTo(practice.customerEmail).length === 1, {
        what: 'the confirmation',
        timeoutMs: 60_000,
      });
      const answer = await owner.delete(
        path`/provider/${practice.provider}/customers/${practice.customer}`,
        undefined,
        { query: { ignoreFutureAppointments: true } },
      );
      expect(answer.status).toBe(204);
      await waitForCompletion();
      expect(mailsTo(practice.customerEmail)).toHaveLength(1);
    }
  }, 120_000);

  it('can be recreated under the same reference, as another person', async () => {
    const practice = await createPractice(crm);
    const { word, reference } = await createCanary(practice);
    const appointment = await createAppointment(practice, past);
    await createParticipation(practice, appointment, { customerReference: reference });
    expect((await crm.delete(path`/provider/${practice.provider}/customers/${reference}`)).status).toBe(204);
    const again = await crm.post(`${practice.at}/customers`, {
      customerReference: reference,
      providerReference: practice.provider,
      userName: 'Newcomer',
    });
    expect(again.status).toBe(201);
    await createParticipation(practice, await createAppointment(practice), { customerReference: reference });
    expect(await everyRead(practice, reference)).not.toContain(`Name ${word}`);
  });
});

/** interface 4.8. */
interface Erasure {
  id: string;
  requestedAt: string;
  completedAt: string | null;
  confirmed: string[];
  awaiting: string[];
}

const findErasure = async (id: string): Promise<Erasure> =>
  (await crm.get<{ erasure: Erasure }>(path`/erasures/${id}`)).body.erasure;

const requestErasure = async (email: string, owner = crm): Promise<Erasure> => {
  const { status, text, body } = await owner.post<{ erasure: Erasure }>(
    '/erasures',
    { email },
    { headers: { 'idempotency-key': unique('erasure') } },
  );
  expect(status, text).toBe(202);
  return body.erasure;
};

const waitUntilComplete = (id: string) =>
  waitUntil(async () => (await findErasure(id)).completedAt !== null, {
    what: 'the erasure of the address',
    timeoutMs: completionMs,
    intervalMs: 100,
  });

/** Somebody who was embedded in an appointment; every field contains the word. */
async function embed(
  practice: Practice,
  word: string,
  fields: Record<string, unknown> = {},
): Promise<{ appointment: string; participation: string }> {
  const participation = unique(word);
  const person = {
    reference: participation,
    name: `Name ${word}`,
    email: `${word}@customers.example`,
    mobile: word,
    note: word,
    state: 'BOOKED',
  };
  const request = newAppointment(practice, { capacity: 2, participations: [person], ...fields });
  const { status, text } = await practice.crm.post(`${practice.at}/appointments`, request, {
    headers: { 'idempotency-key': unique(word) },
  });
  expect(status, text).toBe(201);
  return { appointment: request['reference'] as string, participation };
}

describe('an erased address', () => {
  it('leads to nobody any more: customers of every provider, embedded participants, mails that wait', async () => {
    const [practice, second] = [await createPractice(crm), await createPractice(crm)];
    const { word, reference: customerReference, email } = await createCanary(practice);
    // From the beginning, so that every mail waits.
    smtp.trouble = (recipient) => (recipient.toLowerCase() === email ? { at: 'rcpt', code: 451 } : undefined);
    const again = {
      customerReference: `${word}-2@test`,
      providerReference: second.provider,
      userName: word,
      email: email.toUpperCase(),
      mobile: word,
    };
    expect((await crm.post(`${second.at}/customers`, again)).status).toBe(201);
    await createParticipation(second, await createAppointment(second), {
      customerReference: again.customerReference,
      reference: unique(word),
      message: word,
    });
    await createParticipation(practice, await createAppointment(practice, past), {
      customerReference,
      reference: unique(word),
      message: word,
    });
    const bygone = await embed(practice, word, past);
    const coming = await embed(practice, word);
    // Its participation is gone, and a mail about it waits.
    const deleted = await embed(practice, word);
    const waiting = (recipient: string) =>
      query(
        'notification',
        `SELECT 1 FROM mail WHERE crm_id = $1 AND state = 'pending' AND erasure_id IS NULL AND recipient = $2`,
        [crm.crmId, recipient],
        stack.info,
      );
    for (const { appointment } of [coming, deleted])
      expect((await crm.put(practice.at + path`/appointments/${appointment}`, { description: 'Changed' })).status).toBe(
        200,
      );
    await waitUntil(async () => (await waiting(email)).length === 4, { what: 'the waiting mails', timeoutMs: 60_000 });
    expect(
      (
        await crm.delete(`${practice.at}/appointments/withoutNotification`, {
          appointmentReference: deleted.appointment,
        })
      ).status,
    ).toBe(204);
    const other = await createPractice(await createCrm({}, stack.info));
    const namesake = {
      customerReference: `${unique('namesake')}@test`,
      providerReference: other.provider,
      userName: 'Grace',
      email,
    };
    expect((await other.crm.post(`${other.at}/customers`, namesake)).status).toBe(201);
    const embedded = await embed(other, 'grace', {
      participations: [{ reference: unique('grace'), name: 'Grace', email, state: 'BOOKED' }],
    });

    const { id, ...requested } = await requestErasure(`${word.toUpperCase()}@Customers.Example`);
    expect(requested).toMatchObject({ completedAt: null, requestedAt: expect.any(String) });
    expect([...requested.confirmed, ...requested.awaiting].toSorted()).toEqual([
      'calendar',
      'customer',
      'notification',
    ]);
    await waitUntil(async () => (await waiting(email)).length === 0, {
      what: 'the waiting mails to be erased',
      timeoutMs: 60_000,
    });
    smtp.trouble = () => undefined;
    await waitUntilComplete(id);
    expect(await findErasure(id)).toMatchObject({
      id,
      confirmed: ['customer', 'calendar', 'notification'],
      awaiting: [],
    });

    const keys = await query(
      'customer',
      'SELECT 1 FROM idempotency_key WHERE crm_id = $1 AND $2 = ANY (resource_ids)',
      [crm.crmId, id],
      stack.info,
    );
    expect(keys).toEqual([]);
    // The same person in another CRM is another matter.
    const { body } = await other.crm.get<{ customer: object }>(
      path`/provider/${other.provider}/customers/${namesake.customerReference}`,
    );
    expect(body.customer).toMatchObject({ email });
    expect((await readAppointment(other, embedded.appointment)).participations).toMatchObject([{ email }]);
    expect((await requestErasure(email, other.crm)).id).not.toBe(id);
    await waitForCompletion();
    expect(await findWord(stack, word)).toEqual([]);
    for (const [each, reference] of [
      [practice, customerReference],
      [second, again.customerReference],
    ] as const)
      expect(await everyRead(each, reference)).not.toContain(word);
    const { body: appointments } = await crm.get<Appointment[]>(`${practice.at}/appointments`, {
      query: { includeArchived: true },
    });
    const participants = (appointment: string) =>
      appointments.find(({ reference }) => reference === appointment)!.participations;
    expect(participants(bygone.appointment)).toMatchObject([
      {
        reference: expect.stringMatching(/^anonymous-/),
        name: '',
        email: null,
        mobile: null,
        note: null,
        state: 'BOOKED',
      },
    ]);
    expect(participants(coming.appointment)).toEqual([]);
    // Both seats are free.
    for (const _seat of [1, 2]) await createParticipation(practice, coming.appointment);
  }, 120_000);

  it('is erased in either form of its domain', async () => {
    const practice = await createPractice(crm);
    const word = unique('canary').replace('-', '');
    const forms = [`${word}@bücher.example`, `${word}@xn--bcher-kva.example`];
    for (const [index, email] of forms.entries()) {
      const customer = {
        customerReference: `${word}-${index}@test`,
        providerReference: practice.provider,
        userName: word,
        email,
      };
      expect((await crm.post(`${practice.at}/customers`, customer)).body).toMatchObject({ customer: { email } });
      await embed(practice, word, {
        participations: [{ reference: unique(word), name: word, email, state: 'BOOKED' }],
      });
    }
    for (const email of forms)
      expect((await crm.get(`${practice.at}/customers`, { query: { email } })).body).toHaveLength(2);
    await waitUntilComplete((await requestErasure(`${word}@XN--bcher-kva.example`)).id);
    expect(await findWord(stack, word)).toEqual([]);
  }, 120_000);

  it('may be that of more people than are erased at once', async () => {
    const practice = await createPractice(crm);
    const word = unique('canary').replace('-', '');
    const email = `${word}@customers.example`;
    const people = Array.from({ length: 101 }, (_, index) => ({
      customerReference: `${word}-${index}@test`,
      providerReference: practice.provider,
      userName: word,
      email,
    }));
    for (const person of people) expect((await crm.post(`${practice.at}/customers`, person)).status).toBe(201);
    const participations = people.map(({ customerReference: reference }) => ({
      reference,
      name: word,
      email,
      state: 'BOOKED',
    }));
    await embed(practice, word, { participations, capacity: 101 });
    await waitUntilComplete((await requestErasure(email)).id);
    expect(await findWord(stack, word)).toEqual([]);
  }, 120_000);

  it('does not wait for those of another CRM, however many', async () => {
    const other = await createPractice(await createCrm({}, stack.info));
    const [addressCount, perAddress] = [16, 16];
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
    await waitForErasures(stack.info, completionMs);
  }, 120_000);

  it('includes those who become known while it is searched for, if it is requested again', async () => {
    const practice = await createPractice(crm);
    const { word, email } = await createCanary(practice);
    const pid = (await stack.currentInfo()).pids.calendar!;
    const { id } = await whilePaused([pid], async () => {
      const first = await requestErasure(email);
      const isTaken = async () =>
        (
          await query(
            'customer',
            `SELECT 1 FROM erasure WHERE id = $1 AND published_at > '-infinity'`,
            [first.id],
            stack.info,
          )
        ).length === 1;
      await waitUntil(isTaken, { what: 'the driver to search', timeoutMs: 60_000, intervalMs: 1 });
      const late = {
        customerReference: `${word}-late@test`,
        providerReference: practice.provider,
        userName: word,
        email,
      };
      expect((await crm.post(`${practice.at}/customers`, late)).status).toBe(201);
      expect(await requestErasure(email)).toMatchObject({ id: first.id });
      return first;
    });
    await waitUntilComplete(id);
    expect(await findWord(stack, word)).toEqual([]);
  }, 120_000);

  it('is erased again by another request, while the first one waits for a service', async () => {
    const practice = await createPractice(crm);
    const { word, email } = await createCanary(practice);
    const pid = (await stack.currentInfo()).pids.notification!;
    const ids = await whilePaused([pid], async () => {
      const first = await requestErasure(email);
      await waitUntil(async () => (await findErasure(first.id)).awaiting.join() === 'notification', {
        what: 'the other services',
        timeoutMs: completionMs,
        intervalMs: 50,
      });
      await embed(practice, word);
      const second = await requestErasure(email);
      expect(second).toMatchObject({ id: expect.not.stringContaining(first.id), confirmed: [] });
      return [first.id, second.id];
    });
    for (const id of ids) await waitUntilComplete(id);
    expect(await findWord(stack, word)).toEqual([]);
  }, 120_000);

  it('is not complete before the last mail to a customer who was deleted earlier has been sent', async () => {
    const practice = await createPractice(crm);
    const { word, reference: customerReference, email } = await createCanary(practice);
    await createParticipation(practice, await createAppointment(practice), { customerReference });
    await waitUntil(() => mailsTo(email).length === 1, { what: 'the confirmation', timeoutMs: 60_000 });
    const [attempted, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    smtp.trouble = (recipient) => {
      if (recipient !== email) return undefined;
      attempted.resolve();
      return { at: 'rcpt', hangUntil: released.promise };
    };
    const address = path`/provider/${practice.provider}/customers/${customerReference}`;
    expect((await crm.delete(address, undefined, { query: { ignoreFutureAppointments: true } })).status).toBe(204);
    await attempted.promise;
    const { id } = await requestErasure(email.toUpperCase());
    const confirmed = async () =>
      (await query('customer', 'SELECT 1 FROM erasure_confirmation WHERE erasure_id = $1', [id], stack.info)).length;
    await waitUntil(async () => (await confirmed()) === 2, {
      what: 'the confirmations of the address',
      timeoutMs: 60_000,
    });
    expect(await findErasure(id)).toMatchObject({
      completedAt: null,
      confirmed: ['customer', 'calendar'],
      awaiting: ['notification'],
    });
    released.resolve();
    await waitUntilComplete(id);
    smtp.trouble = () => undefined;
    expect(await findWord(stack, word)).toEqual([]);
    expect(mailsTo(email)).toHaveLength(2);
  }, 120_000);

  it('is erased although its customers are deleted at that moment, with or without their appointments', async () => {
    const practice = await createPractice(crm);
    for (let round = 0; round < 10; round += 1) {
      const { word, reference: customerReference, email } = await createCanary(practice);
      await createParticipation(practice, await createAppointment(practice), { customerReference, message: word });
      const address = path`/provider/${practice.provider}/customers/${customerReference}`;
      const [{ id }, ...deletions] = await Promise.all([
        requestErasure(email),
        ...[1, 2, 3, 4].map((times) =>
          crm.delete(address, undefined, { query: times === 4 ? { ignoreFutureAppointments: true } : {} }),
        ),
      ]);
      for (const { status } of deletions) expect([204, 404, 409]).toContain(status);
      await waitUntilComplete(id);
      expect(await findWord(stack, word)).toEqual([]);
    }
  }, 120_000);
});

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

    expect((await asOperator('key', 'replay', '--since', backupTime.toISOString())).output).toContain(
      '✔ Revoked 1 key again.',
    );
    const replay = await asOperator('erasures', 'replay', '--since', backupTime.toISOString());
    expect(replay).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^✔ Repeating 3 erasures, 3 of them found only in events/),
    });
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

/** Waits until the services can use their databases again. */
async function waitForStatus(status: number, address: string): Promise<void> {
  await waitUntil(async () => (await crm.get(address)).status === status, {
    what: `${status} for ${address}`,
    timeoutMs: 60_000,
  });
}
