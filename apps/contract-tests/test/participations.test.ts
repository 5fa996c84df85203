import { waitUntil } from '@scheduling/embedded';
import { beforeAll, describe, expect, it } from 'vitest';
import { apiInfo, type Appointment, type Participation, readAppointment } from './answers.ts';
import { path, type Problem, readPages } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { bookUntilMailWaits, mailsAt, type ParticipationMail, sentMails, withoutTime } from './mails.ts';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

const participations = (): string => `${practice.at}/participations`;

describe('participations (interface 4.3)', () => {
  const body = (appointmentReference: string, fields: Record<string, unknown> = {}) => ({
    reference: `${unique('participation')}@test`,
    appointmentReference,
    customerReference: practice.customer,
    state: 'BOOKED',
    ...fields,
  });

  it('are created, returned in full, shown in their appointment, and safe to repeat', async () => {
    const appointment = await createAppointment(practice);
    const request = body(appointment, { message: 'See you' });
    const created = await crm.post<{ participation: Participation }>(participations(), request);
    const shown = {
      reference: request.reference,
      appointmentReference: appointment,
      customerReference: practice.customer,
      email: practice.customerEmail,
      mobile: null,
      name: 'Grace Hopper',
      note: null,
      state: 'BOOKED',
      messages: ['See you'],
      metadata: null,
      noShow: false,
    };
    expect(created.status).toBe(201);
    expect(created.body).toStrictEqual({ 'api-info': apiInfo, participation: shown });
    const again = await crm.post(participations(), request);
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    expect((await readAppointment(practice, appointment)).participations).toStrictEqual([shown]);
    const [mail] = await waitForMails(practice.customerEmail, 1);
    expect(mail).toMatchObject({
      subject: 'Your booking: Mon, 3 Mar 2031, 09:00 – Haircut',
      to: [{ address: practice.customerEmail, name: 'Grace Hopper' }],
    });
    expect(mail!.text).toContain('See you');
    expect(mail!.text).toContain('9:00');
  });

  it('that are RESERVED return their expiry: 3 minutes later', async () => {
    const before = Date.now();
    const { body: answer } = await crm.post<{ participation: Participation }>(
      participations(),
      body(await createAppointment(practice), { state: 'RESERVED' }),
    );
    const lifetimeMs = Date.parse(answer.participation.expiresAt!) - before;
    expect(lifetimeMs).toBeGreaterThan(179_000 - 1_000);
    expect(lifetimeMs).toBeLessThan(180_000 + (Date.now() - before) + 1_000);
  });

  it('take seats when BOOKED or RESERVED, none when REQUESTED, and never more than the capacity', async () => {
    const appointment = await createAppointment(practice, { capacity: 2 });
    const full = { status: 409, body: { code: 'participation.capacity_exhausted' } };
    await createParticipation(practice, appointment);
    const reserved = await createParticipation(practice, appointment, { state: 'RESERVED' });
    const requested = await createParticipation(practice, appointment, { state: 'REQUESTED' });
    for (const state of ['BOOKED', 'RESERVED'])
      expect(await crm.post(participations(), body(appointment, { state }))).toMatchObject(full);
    const confirm = participations() + path`/${requested}`;
    expect(await crm.post(confirm, { state: 'BOOKED' })).toMatchObject(full);
    expect(await crm.post(participations() + path`/${reserved}`, { state: 'CANCELED' })).toMatchObject({ status: 200 });
    expect(await crm.post(confirm, { state: 'BOOKED' })).toMatchObject({
      status: 200,
      body: { participation: { state: 'BOOKED' } },
    });
    expect(await crm.post(participations(), body(appointment))).toMatchObject(full);
    expect(await crm.post(participations(), body(appointment), { query: { ignoreCapacity: true } })).toMatchObject({
      status: 201,
    });
    const waiting = await createParticipation(practice, appointment, { state: 'REQUESTED' });
    expect(
      await crm.post(participations() + path`/${waiting}`, { state: 'BOOKED' }, { query: { ignoreCapacity: true } }),
    ).toMatchObject({ status: 200 });
  });

  it('are changed in what a request has, and a message needs a state', async () => {
    const reference = await createParticipation(practice, await createAppointment(practice));
    const change = (fields: object) => crm.post(participations() + path`/${reference}`, fields);
    const refused = (pointer: string) => ({ status: 400, body: { code: 'request.invalid', errors: [{ pointer }] } });
    expect(await change({})).toMatchObject(refused('/state'));
    expect(await change({ message: 'See you' })).toMatchObject(refused('/state'));
    expect(await change({ metadata: { a: '1' }, message: 'See you' })).toMatchObject(refused('/message'));
    expect((await crm.get(participations() + path`/${reference}`)).body).toMatchObject({
      participation: { metadata: null, messages: null },
    });
    expect(await change({ metadata: { a: '1' }, message: '' })).toMatchObject({
      status: 200,
      body: { participation: { metadata: { a: '1' }, messages: null } },
    });
    expect(await change({ state: 'CANCELED', message: 'Sorry' })).toMatchObject({
      status: 200,
      body: { participation: { metadata: { a: '1' }, messages: ['Sorry'] } },
    });
  });

  it('with a known reference are rejected or follow the moves, as the caller chooses', async () => {
    const [appointment, other] = [
      await createAppointment(practice, { capacity: 5 }),
      await createAppointment(practice),
    ];
    const request = body(appointment, { state: 'REQUESTED' });
    expect(await crm.post(participations(), request)).toMatchObject({ status: 201 });
    const taken = { status: 409, body: { code: 'participation.reference_taken' } };
    expect(await crm.post(participations(), request, { query: { onDuplicateRaise: true } })).toMatchObject(taken);
    expect(await crm.post(participations(), { ...request, state: 'BOOKED' })).toMatchObject({
      status: 200,
      body: { participation: { state: 'BOOKED' } },
    });
    expect(await crm.post(participations(), { ...request, state: 'RESERVED' })).toMatchObject({
      status: 400,
      body: { code: 'participation.state_unsupported' },
    });
    expect(await crm.post(participations(), { ...request, appointmentReference: other })).toMatchObject(taken);
    const second = `${unique('customer')}@test`;
    await crm.post(`${practice.at}/customers`, {
      customerReference: second,
      providerReference: practice.provider,
      userName: 'B',
    });
    expect(await crm.post(participations(), { ...request, customerReference: second })).toMatchObject(taken);
    expect(await crm.post(participations(), { ...request, state: 'DELETED' })).toMatchObject({ status: 200 });
    expect(await crm.post(participations(), { ...request, state: 'BOOKED' })).toMatchObject({
      status: 409,
      body: { code: 'participation.move_not_allowed' },
    });
  });

  it('require an appointment and a customer, and are found by their reference', async () => {
    const appointment = await createAppointment(practice);
    expect(await crm.post(participations(), body('nothing@test'))).toMatchObject({
      status: 404,
      body: { code: 'appointment.not_found' },
    });
    expect(await crm.post(participations(), body(appointment, { customerReference: 'nobody@test' }))).toMatchObject({
      status: 404,
      body: { code: 'customer.not_found' },
    });
    expect(await crm.post(`${participations()}/nothing%40test`, { state: 'BOOKED' })).toMatchObject({
      status: 404,
      body: { code: 'participation.not_found' },
    });
  });

  const moves: Record<string, Record<string, number>> = {
    RESERVED: { RESERVED: 200, REQUESTED: 400, BOOKED: 200, CANCELED: 200, DELETED: 409 },
    REQUESTED: { RESERVED: 400, REQUESTED: 200, BOOKED: 200, CANCELED: 200, DELETED: 409 },
    BOOKED: { RESERVED: 400, REQUESTED: 400, BOOKED: 200, CANCELED: 200, DELETED: 200 },
    CANCELED: { RESERVED: 400, REQUESTED: 400, BOOKED: 409, CANCELED: 200, DELETED: 409 },
    DELETED: { RESERVED: 400, REQUESTED: 400, BOOKED: 409, CANCELED: 200, DELETED: 200 },
  };
  const withMail: Record<string, string> = {
    'RESERVED BOOKED': 'Your booking: Haircut',
    'REQUESTED BOOKED': 'Confirmed: Haircut',
    'REQUESTED CANCELED': 'Declined: Haircut',
    'BOOKED CANCELED': 'Cancelled: Haircut',
  };

  it.each(
    Object.entries(moves).flatMap(([from, row]) =>
      Object.entries(row).map(([to, status]) => [from, to, status] as const),
    ),
  )('move from %s to %s: %i, with a mail if the table says so (interface 3.1)', async (from, to, status) => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own, { capacity: 5 });
    const reference = `${unique('p')}@test`;
    const created = { reference, appointmentReference: appointment, customerReference: own.customer, state: from };
    expect(await crm.post(`${own.at}/participations`, created, { query: { sendMails: false } })).toMatchObject({
      status: 201,
    });
    const moved = await crm.post<Problem & { participation: Participation }>(
      own.at + path`/participations/${reference}`,
      { state: to },
    );
    expect(moved.status).toBe(status);
    const codes: Record<number, string> = {
      400: 'participation.state_unsupported',
      409: 'participation.move_not_allowed',
    };
    if (status === 200) expect(moved.body.participation.state).toBe(to);
    else expect(moved.body.code).toBe(codes[status]);
    if (status === 409) {
      const allowed = Object.keys(moves[from]!).filter((state) => state !== from && moves[from]![state] === 200);
      for (const state of allowed) expect(moved.body.detail).toContain(state);
    }
    const subject = withMail[`${from} ${to}`];
    // The request that is received after the move marks the end of the list of mails.
    await createParticipation(own, appointment, { state: 'REQUESTED' });
    const expected = [...(subject === undefined ? [] : [subject]), 'Your request: Haircut'];
    const mails = await waitForMails(own.customerEmail, expected.length);
    expect(mails.map(withoutTime).sort()).toEqual(expected.sort());
  });

  it('are listed by the start of the appointment, filtered, and page by page', async () => {
    practice = await createPractice(crm);
    const [late, early] = [
      await createAppointment(practice, { start: '2031-03-04T09:00', end: '2031-03-04T10:00', capacity: 9 }),
      await createAppointment(practice, { capacity: 9 }),
    ];
    const other = `${unique('customer')}@test`;
    await crm.post(`${practice.at}/customers`, {
      customerReference: other,
      providerReference: practice.provider,
      userName: 'B',
    });
    const [second, third] = [
      await createParticipation(practice, late),
      await createParticipation(practice, late, { customerReference: other }),
    ];
    const first = await createParticipation(practice, early, { state: 'RESERVED' });
    const list = async (query: Record<string, string> = {}): Promise<string[]> => {
      const { status, body } = await crm.get<Participation[]>(participations(), { query });
      expect(status).toBe(200);
      return body.map(({ reference }) => reference);
    };
    const complete = await crm.get<Participation[]>(participations());
    expect(complete.body).toStrictEqual([
      ...(await readAppointment(practice, early)).participations,
      ...(await readAppointment(practice, late)).participations,
    ]);
    expect(complete.body.map(({ reference }) => reference)).toEqual([first, second, third]);
    expect(await list({ customerRef: other })).toEqual([third]);
    expect(await list({ state: 'BOOKED' })).toEqual([second, third]);
    expect(await list({ from: '2031-03-03T10:00' })).toEqual([second, third]);
    expect(await list({ to: '2031-03-04T09:00', customerRef: practice.customer })).toEqual([first]);
    expect(await list({ changedSince: '2020-01-01T00:00' })).toEqual([first, second, third]);
    expect(await list({ changedSince: '2031-01-01T00:00' })).toEqual([]);
    const pages = await readPages<Participation>(crm, participations(), { limit: '1' });
    expect(pages).toStrictEqual(complete.body.map((each) => [each]));
  });

  it('send no mail with sendMails=false', async () => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    const reference = `${unique('p')}@test`;
    const quiet = { query: { sendMails: false } };
    await crm.post(
      `${own.at}/participations`,
      { reference, appointmentReference: appointment, customerReference: own.customer, state: 'BOOKED' },
      quiet,
    );
    await crm.post(own.at + path`/participations/${reference}`, { state: 'CANCELED' }, quiet);
    await createParticipation(own, appointment);
    expect(await waitForMails(own.customerEmail, 1)).toHaveLength(1);
  });

  it('are mailed about in the customer’s language and the provider’s time zone', async () => {
    const own = await createPractice(crm, { timeZone: 'America/New_York', language: 'de' });
    await createParticipation(
      own,
      await createAppointment(own, { start: '2031-07-01T18:15', end: '2031-07-01T19:00' }),
    );
    const [mail] = await waitForMails(own.customerEmail, 1);
    expect(mail!.subject).toBe('Ihre Buchung: Di., 1. Juli 2031, 18:15 Uhr – Haircut');
    expect(mail!.text).toMatch(/1\. Juli 2031[^]*18:15[^]*19:00/);
  });

  it('show a customer’s changed name shortly afterwards', async () => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    await createParticipation(own, appointment);
    await crm.put(own.at + path`/customers/${own.customer}`, { userName: 'Grace Murray', mobile: '+1' });
    const participation = await waitUntil(
      async () => {
        const { body: list } = await crm.get<Appointment[]>(`${own.at}/appointments`);
        return list[0]!.participations.find(({ name }) => name === 'Grace Murray');
      },
      { what: 'the new name', timeoutMs: 60_000 },
    );
    expect(participation).toMatchObject({ name: 'Grace Murray', mobile: '+1' });
  });
});

describe('the mails about a participation (interface 4.3)', () => {
  const resend = (at: string, mailId: string, headers: Record<string, string> = {}) =>
    crm.post<{ mail: ParticipationMail }>(`${at}/${mailId}/resend`, undefined, { headers });

  it('are listed, and sent again as new ones with the same event for the calendar', async () => {
    const own = await createPractice(crm);
    const participation = await createParticipation(own, await createAppointment(own));
    const at = mailsAt(own, participation);
    const [mail] = await sentMails(own, participation);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(mail).toStrictEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      template: 'booking-confirmed',
      state: 'SENT',
      error: null,
      attempts: 1,
      createdAt: time,
      finishedAt: time,
    });
    const { status, body } = await resend(at, mail!.id);
    expect(status).toBe(202);
    const waiting = {
      template: 'booking-confirmed',
      state: 'PENDING',
      error: null,
      attempts: 0,
      createdAt: time,
      finishedAt: null,
    };
    expect(body).toStrictEqual({ 'api-info': apiInfo, mail: { id: expect.any(String), ...waiting } });
    expect((await sentMails(own, participation, 2)).map(({ id }) => id)).toEqual([mail!.id, body.mail.id]);
    const [first, second] = await waitForMails(own.customerEmail, 2);
    expect([second!.subject, second!.text]).toEqual([first!.subject, first!.text]);
  });

  it('are sent again once for an Idempotency-Key', async () => {
    const own = await createPractice(crm);
    const participation = await createParticipation(own, await createAppointment(own));
    const at = mailsAt(own, participation);
    const [mail] = await sentMails(own, participation);
    const headers = { 'idempotency-key': unique('key') };
    const first = await resend(at, mail!.id, headers);
    await sentMails(own, participation, 2);
    const again = await resend(at, mail!.id, headers);
    expect([again.status, again.headers.get('idempotency-replayed'), again.body.mail.id]).toEqual([
      202,
      'true',
      first.body.mail.id,
    ]);
    expect(again.body.mail.state).toBe('SENT');
    expect(await resend(at, unique('other'), headers)).toMatchObject({
      status: 422,
      body: { code: 'idempotency_key.reused' },
    });
    expect(await sentMails(own, participation, 2)).toHaveLength(2);
  });

  it('are not sent again while they wait for a quota, or once they are outdated', async () => {
    const own = await createPractice(crm);
    const { participation, mail } = await bookUntilMailWaits(own);
    expect(mail).toMatchObject({ state: 'PENDING', error: 'recipient-quota', finishedAt: null });
    expect(await resend(mailsAt(own, participation), mail.id)).toMatchObject({
      status: 409,
      body: { code: 'mail.pending' },
    });
    // Cancellations do not wait, and drop the confirmation.
    await crm.post(own.at + path`/participations/${participation}`, { state: 'CANCELED' });
    const dropped = await waitUntil(
      async () => {
        const { body: mails } = await crm.get<ParticipationMail[]>(mailsAt(own, participation));
        return mails.every(({ state }) => state !== 'PENDING') && mails.length === 2 ? mails : undefined;
      },
      { what: 'the cancellation', timeoutMs: 60_000 },
    );
    expect(dropped).toMatchObject([
      { state: 'FAILED', error: 'superseded' },
      { template: 'booking-cancelled', state: 'SENT' },
    ]);
    expect(await resend(mailsAt(own, participation), mail.id)).toMatchObject({
      status: 409,
      body: { code: 'mail.outdated' },
    });
    // A copy of the cancellation waits like any other mail.
    const copy = (await resend(mailsAt(own, participation), dropped[1]!.id)).body.mail;
    const isHeld = ({ id, error }: ParticipationMail): boolean => id === copy.id && error === 'recipient-quota';
    await waitUntil(async () => (await crm.get<ParticipationMail[]>(mailsAt(own, participation))).body.some(isHeld), {
      what: 'the copy to wait',
      timeoutMs: 60_000,
    });
  });

  it('are not found with another id, provider or participation', async () => {
    const [own, other] = [await createPractice(crm), await createPractice(crm)];
    const participation = await createParticipation(own, await createAppointment(own));
    const [mail] = await sentMails(own, participation);
    const foreign = await createParticipation(other, await createAppointment(other));
    expect(await resend(mailsAt(other, foreign), mail!.id)).toMatchObject({
      status: 404,
      body: { code: 'mail.not_found' },
    });
    expect(await resend(mailsAt(own, participation), 'none')).toMatchObject({
      status: 404,
      body: { code: 'mail.not_found' },
    });
    for (const [at, code] of [
      [mailsAt(other, participation), 'participation.not_found'],
      [mailsAt({ at: '/provider/nobody%40test' }, participation), 'provider.not_found'],
    ] as const) {
      expect(await crm.get(at)).toMatchObject({ status: 404, body: { code } });
      expect(await resend(at, mail!.id)).toMatchObject({ status: 404, body: { code } });
    }
  });
});
