import { waitUntil } from '@scheduling/embedded';
import { whilePaused } from '@scheduling/testing';
import { describe, expect, it } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import { type Appointment, readAppointment } from './answers.ts';
import { createAppointment, createCrm, createParticipation, createPractice, unique } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { findWord } from './find-word.ts';
import {
  completionMs,
  createCanary,
  crm,
  embed,
  everyRead,
  findErasure,
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

describe('a deleted customer', () => {
  it('is no longer found anywhere, and the booking history is kept', async () => {
    const practice = await createPractice(crm);
    const { word, reference: customerReference, email } = await createCanary(practice);
    const book = (appointment: string, fields: Record<string, unknown> = {}) =>
      createParticipation(practice, appointment, {
        customerReference,
        reference: unique(word),
        message: `Message ${word}`,
        metadata: { word, [word.slice(0, 40)]: 'key' },
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
        metadata: null,
        noShow: false,
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
