import { Access, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { events } from '@scheduling/events';
import { eventually, patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allEnded,
  type CalendarUnderTest,
  createAppointment,
  freshReference,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import {
  at,
  createPage,
  listTimes,
  newPageBooking,
  openTimeslot,
  setRules,
  timesOf,
  choose,
  participationsOf,
} from './page-under-test.ts';

const { BOOKED } = ParticipationState;

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

describe('a booking that is to be confirmed', () => {
  /** The ids of those whose mails are to be written. */
  async function mailsOf(email: string): Promise<string[]> {
    const rows = await calendar.database.kysely
      .selectFrom('outbox')
      .innerJoin('pendingBooking', (join) =>
        join.on(sql`data ->> 'pendingBookingId'`, '=', sql`pending_booking.id::text`),
      )
      .select('pendingBooking.id')
      .where('subject', '=', events.bookingVerificationRequested.subject)
      .where('email', '=', email)
      .execute();
    return rows.map(({ id }) => id);
  }

  async function tokenOf(email: string): Promise<string | undefined> {
    const [pendingBookingId] = await mailsOf(email);
    return (await calendar.pages.getPendingBookingMailData({ crmId: 'one', pendingBookingId: pendingBookingId! }))
      .token;
  }

  const freshAddress = (): string => `${randomUUID()}@example.com`;

  it.each([
    ['by the rules', { verifyEmail: true }, {}],
    ['because the page wants it', {}, { stepUp: true }],
    ['because the person has too many', { maxPerPerson: 1 }, {}],
  ])('%s takes no seat, and is booked by the link in its mail, once', async (why, rules, booking) => {
    const page = await createPage(calendar, rules);
    const { providerId } = page;
    await openTimeslot(calendar, page);
    const [email, hasTooMany] = [freshAddress(), why.includes('too many')];
    if (hasTooMany) {
      const first = newPageBooking(page, await choose(calendar, page, '11:00'), { start: at('11:00'), email });
      expect((await calendar.pages.bookPageTime(first)).pending).toBe(false);
    }
    const { choice } = await choose(calendar, page, '10:00');
    const request = newPageBooking(page, { choice }, { email, note: 'Hello', ...booking });
    const { pending, receipt } = await calendar.pages.bookPageTime(request);
    expect(pending).toBe(true);
    expect(await calendar.pages.bookPageTime(request)).toMatchObject({ pending: true, receipt });
    const shown = await calendar.pages.getPageBooking({ providerId, receipt });
    expect([shown.booking, shown.email]).toEqual([undefined, email]);
    const [pendingBookingId, ...others] = await mailsOf(email);
    expect(others).toEqual([]);
    const data = await calendar.pages.getPendingBookingMailData({ crmId: 'one', pendingBookingId: pendingBookingId! });
    expect(data).toMatchObject({
      name: 'Ada Lovelace',
      email,
      language: 'en',
      description: 'Massage',
      requested: false,
    });
    expect(data).toMatchObject({ start: at('10:00'), end: at('10:30'), price: { value: 45, currency: 'EUR' } });
    expect(data.token === undefined).toBe(hasTooMany);
    if (hasTooMany) await setRules(calendar, page.owner, { maxPerPerson: 2 });
    const token = (await tokenOf(email))!;
    expect(await calendar.pages.getPendingBooking({ token })).toMatchObject({
      offer: 'product',
      place: { start: at('10:00'), resourceReference: 'anna' },
      note: 'Hello',
      language: 'en',
      receipt: undefined,
    });
    const { start, resourceReference, price } = request;
    const confirmation = { token, start, resourceReference, price };
    const [first, again] = [
      await calendar.pages.confirmPendingBooking(confirmation),
      await calendar.pages.confirmPendingBooking({ ...confirmation, start: at('10:30') }),
    ];
    expect(again.receipt).toBe(first.receipt);
    const { booking: made } = await calendar.pages.getPageBooking({ providerId, receipt: first.receipt });
    expect(made).toMatchObject({ state: BOOKED, start: at('10:00') });
    const { receipt: later } = first;
    expect(await calendar.pages.getPendingBooking({ token })).toMatchObject({ place: undefined, receipt: later });
    // The form cannot be sent again as somebody else's, nor by whoever knows what the person has typed and has no mail.
    const repeated = [{ ...request, email: freshAddress() }, ...('verifyEmail' in rules ? [request] : [])];
    for (const other of repeated)
      expect((await refusal(calendar.pages.bookPageTime(other))).code).toBe('booking_page.choice_used');
    expect(await participationsOf(calendar, page)).toContainEqual(
      expect.objectContaining({ state: 'BOOKED', note: 'Hello' }),
    );
  });

  it('is confirmed at another time if its own is taken', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    await calendar.pages.bookPageTime(newPageBooking(page, { choice: randomUUID() }, { email }));
    const token = (await tokenOf(email))!;
    await createAppointment(calendar, { ...page.owner, resourceReference: 'anna', end: '2099-06-01T10:30' });
    expect((await calendar.pages.getPendingBooking({ token })).place).toBeUndefined();
    const confirmation = { token, resourceReference: 'anna', price: page.offer.price };
    const call = calendar.pages.confirmPendingBooking({ ...confirmation, start: at('10:00') });
    expect((await refusal(call)).code).toBe('slot.unavailable');
    await calendar.pages.confirmPendingBooking({ ...confirmation, start: at('11:00') });
    expect(timesOf(await listTimes(calendar, page))).not.toContain('11:00 anna');
  });

  it('is not confirmed once the page is for those who are invited, but shown if it was', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const emails = [freshAddress(), freshAddress()];
    for (const email of emails)
      await calendar.pages.bookPageTime(newPageBooking(page, { choice: randomUUID() }, { email }));
    const [confirmed, late] = await Promise.all(emails.map(async (email) => (await tokenOf(email))!));
    const confirmation = { resourceReference: 'anna', price: page.offer.price, start: at('10:00') };
    const { receipt } = await calendar.pages.confirmPendingBooking({ ...confirmation, token: confirmed! });
    await setRules(calendar, page.owner, { access: Access.INVITED });
    const refused = [
      calendar.pages.getPendingBooking({ token: late! }),
      calendar.pages.confirmPendingBooking({ ...confirmation, start: at('11:00'), token: late! }),
    ];
    for (const call of refused) expect((await refusal(call)).code).toBe('booking_page.invited_only');
    expect(await calendar.pages.getPendingBooking({ token: confirmed! })).toMatchObject({ receipt });
    expect(await calendar.pages.confirmPendingBooking({ ...confirmation, token: confirmed! })).toMatchObject({
      receipt,
    });
  });

  it('is refused like any other if its time is taken, or its price is another one', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page, { end: '2099-06-01T10:30' });
    const request = newPageBooking(page, { choice: randomUUID() });
    const price = { value: 1, currency: 'EUR' };
    expect((await refusal(calendar.pages.bookPageTime({ ...request, price }))).code).toBe('booking_page.changed');
    await createAppointment(calendar, { ...page.owner, resourceReference: 'anna' });
    expect((await refusal(calendar.pages.bookPageTime(request))).code).toBe('slot.unavailable');
  });

  it('writes three mails a day to an address that confirms none, and shows no difference', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    const forms = [email, email.toUpperCase(), email, email, email];
    const answers = [];
    for (const form of forms) {
      const choice = randomUUID();
      const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email: form }));
      answers.push(await calendar.pages.getPageBooking({ providerId: page.providerId, receipt }));
    }
    expect(answers.map((answer) => answer.email)).toEqual(forms);
    expect(await mailsOf(email)).toHaveLength(2);
    expect(await mailsOf(email.toUpperCase())).toHaveLength(1);
    const confirmation = { token: (await tokenOf(email))!, start: at('10:00'), resourceReference: 'anna' };
    await calendar.pages.confirmPendingBooking({ ...confirmation, price: page.offer.price });
    await calendar.pages.bookPageTime(newPageBooking(page, { choice: randomUUID() }, { email, start: at('11:00') }));
    expect(await mailsOf(email)).toHaveLength(3);
  });

  it('of somebody who has as many bookings as the rules permit is not confirmed by a link from before', async () => {
    const page = await createPage(calendar, { verifyEmail: true, maxPerPerson: 1 });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    const confirm = (start: Date, token: string) =>
      calendar.pages.confirmPendingBooking({ token, start, resourceReference: 'anna', price: page.offer.price });
    const tokens = [];
    for (const time of ['10:00', '10:30']) {
      const choice = randomUUID();
      await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email, start: at(time) }));
      const id = (await mailsOf(email)).at(-1)!;
      tokens.push((await calendar.pages.getPendingBookingMailData({ crmId: 'one', pendingBookingId: id })).token!);
    }
    await confirm(at('10:00'), tokens[0]!);
    expect((await refusal(confirm(at('10:30'), tokens[1]!))).code).toBe('booking_page.limit_reached');
  });

  it('is what becomes of bookings once many were made for an address in a day, also if they were cancelled', async () => {
    const page = await createPage(calendar, { maxPerPerson: 1 });
    await openTimeslot(calendar, page);
    const { providerId } = page;
    const email = freshAddress();
    const pending = [];
    for (const time of ['10:00', '10:30', '11:00']) {
      const { choice } = await choose(calendar, page, time);
      const sent = await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email, start: at(time) }));
      pending.push(sent.pending);
      if (sent.pending) break;
      const { token } = await calendar.pages.getPageBooking({ providerId, receipt: sent.receipt });
      await calendar.persons.cancelOwnBooking({ token: token! });
    }
    expect(pending).toEqual([false, false, true]);
    expect(await tokenOf(email)).toBeDefined();
  });

  it('is not changed by whoever knows the choice, who can only ask for another mail', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    const request = newPageBooking(page, { choice: randomUUID() }, { email });
    await calendar.pages.bookPageTime(request);
    const token = (await tokenOf(email))!;
    await calendar.pages.bookPageTime({ ...request, name: 'Somebody', note: 'else', start: at('11:00') });
    expect(await calendar.pages.getPendingBooking({ token })).toMatchObject({
      start: at('10:00'),
      name: 'Ada Lovelace',
      note: undefined,
    });
    expect(await mailsOf(email)).toHaveLength(2);
  });

  it('is booked once, even if the form is sent again without the rule', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page, { defaultCapacity: 3 });
    const email = freshAddress();
    const request = newPageBooking(page, { choice: randomUUID() }, { email });
    await calendar.pages.bookPageTime(request);
    const token = (await tokenOf(email))!;
    await setRules(calendar, page.owner, { verifyEmail: false });
    const { receipt } = await calendar.pages.bookPageTime(request);
    const { start, resourceReference, price } = request;
    const confirmed = await calendar.pages.confirmPendingBooking({ token, start, resourceReference, price });
    expect(confirmed.receipt).toBe(receipt);
    expect(await participationsOf(calendar, page)).toHaveLength(1);
  });

  it('is erased with the customer for whom it was booked, whatever the address is by now', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    const request = newPageBooking(page, { choice: randomUUID() }, { email });
    await calendar.pages.bookPageTime(request);
    const token = (await tokenOf(email))!;
    const { start, resourceReference, price } = request;
    await calendar.pages.confirmPendingBooking({ token, start, resourceReference, price });
    const [made] = await participationsOf(calendar, page);
    const customerId = made!.customerId!;
    await calendar.database.kysely
      .updateTable('customer')
      .set({ email: 'other@example.com' })
      .where('id', '=', customerId)
      .execute();
    await calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true });
    expect((await refusal(calendar.pages.getPendingBooking({ token }))).code).toBe('link.not_found');
  });

  it('of one address at once makes as many bookings as the rules permit', async () => {
    const page = await createPage(calendar, { maxPerPerson: 2 });
    await openTimeslot(calendar, page, { end: '2099-06-01T16:00' });
    await openTimeslot(calendar, page, { end: '2099-06-01T16:00', resourceReference: 'ben' });
    await using replica = await calendar.startReplica();
    const email = freshAddress();
    const answers = await allEnded(
      ['anna', 'ben'].flatMap((resourceReference, index) =>
        ['10:00', '11:00', '12:00', '13:00'].map((time) =>
          patiently(() =>
            [calendar, replica][index]!.pages.bookPageTime(
              newPageBooking(page, { choice: randomUUID() }, { email, start: at(time), resourceReference }),
            ),
          ),
        ),
      ),
    );
    expect(answers.filter(({ pending }) => !pending)).toHaveLength(2);
    expect(await participationsOf(calendar, page)).toHaveLength(2);
  });

  it('is gone when its address is erased, and so is the digest of the address', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    await calendar.pages.bookPageTime(newPageBooking(page, { choice: randomUUID() }, { email }));
    const token = (await tokenOf(email))!;
    await calendar.removals.forgetAddress({ crmId: 'two', email });
    expect((await calendar.pages.getPendingBooking({ token })).name).toBe('Ada Lovelace');
    const countMails = async (): Promise<number> =>
      (await calendar.database.kysely.selectFrom('verificationMail').select('sentAt').execute()).length;
    const before = await countMails();
    await calendar.removals.forgetAddress({ crmId: 'one', email: email.toUpperCase() });
    expect((await refusal(calendar.pages.getPendingBooking({ token }))).code).toBe('link.not_found');
    expect(await countMails()).toBe(before - 1);
  });

  it('is gone when a customer with its address is deleted', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    const customerReference = freshReference('customer');
    const { customer } = await calendar.customers.createCustomer({
      ...page.owner,
      customerReference,
      userName: 'Ada',
      email,
    });
    await calendar.copies.refreshCustomer({ crmId: 'one', customerId: customer!.id });
    await calendar.pages.bookPageTime(newPageBooking(page, { choice: randomUUID() }, { email }));
    const token = (await tokenOf(email))!;
    const removal = { crmId: 'one', customerId: customer!.id, ignoreFutureAppointments: true };
    await calendar.removals.removeCustomer(removal);
    expect((await refusal(calendar.pages.getPendingBooking({ token }))).code).toBe('link.not_found');
  });

  it('is over after 30 minutes, and then nothing of it is left', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const email = freshAddress();
    const { choice } = await choose(calendar, page, '10:00');
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email }));
    const token = (await tokenOf(email))!;
    const { expiresAt } = await calendar.database.kysely
      .updateTable('pendingBooking')
      .set({ expiresAt: sql<Date>`expires_at - interval '30 minutes'` })
      .where('email', '=', email)
      .returning('expiresAt')
      .executeTakeFirstOrThrow();
    expect(Math.abs(expiresAt.getTime() - Date.now())).toBeLessThan(30_000);
    await eventually(async () => {
      expect((await refusal(calendar.pages.getPendingBooking({ token }))).code).toBe('link.not_found');
      const { providerId } = page;
      expect((await refusal(calendar.pages.getPageBooking({ providerId, receipt }))).code).toBe('link.not_found');
    });
    // The same is another one, with a mail of its own.
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email }));
    expect(await mailsOf(email)).toHaveLength(2);
    await sql`UPDATE pending_booking SET expires_at = now() WHERE email = ${email}`.execute(calendar.database.kysely);
    await using _replica = await calendar.startReplica();
    await eventually(async () =>
      expect(
        await calendar.database.kysely.selectFrom('pendingBooking').select('id').where('email', '=', email).execute(),
      ).toEqual([]),
    );
  });

  it('cannot be confirmed by another token', async () => {
    const page = await createPage(calendar, { verifyEmail: true });
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:00');
    const email = freshAddress();
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email }));
    const bytes = Buffer.from((await tokenOf(email))!, 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed[index]! ^= 1;
      const token = changed.toString('base64url');
      expect((await refusal(calendar.pages.getPendingBooking({ token }))).code).toBe('link.not_found');
      expect((await refusal(calendar.persons.getOwnBooking({ token }))).code).toBe('link.not_found');
    }
  });
});
