import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allEnded,
  type CalendarUnderTest,
  createAppointment,
  eventsOf,
  freshReference,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import {
  at,
  createPage,
  listTimes,
  newOffer,
  newPageBooking,
  openTimeslot,
  type PageUnderTest,
  setRules,
  timesOf,
  choose,
  participationsOf,
} from './page-under-test.ts';
import { listSlots } from './slots-under-test.ts';

const { BOOKED } = ParticipationState;

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

describe('booking', () => {
  it('makes the hold a booking, with a mail, for a customer of its own', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:00');
    const request = newPageBooking(page, { choice }, { mobile: '+49 170 1234567', note: 'On the first floor?' });
    await calendar.pages.bookPageTime(request);
    const reference = `page-${choice}`;
    const { participation } = await calendar.participations.getParticipation({
      ...page.owner,
      participationReference: reference,
    });
    expect(participation).toMatchObject({
      state: BOOKED,
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      mobile: '+49 170 1234567',
      note: 'On the first floor?',
      customerReference: expect.stringMatching(/^page-[0-9a-f-]{36}$/) as string,
    });
    const events = await eventsOf(calendar, reference);
    expect(events.map(({ cause, silent }) => [cause, silent])).toEqual([
      ['PARTICIPATION_CHANGE_CAUSE_CREATED', true],
      ['PARTICIPATION_CHANGE_CAUSE_UPDATED', false],
    ]);
    const { customer } = await calendar.customers.getCustomer({
      crmId: 'one',
      key: {
        $case: 'reference',
        value: {
          providerReference: page.owner.providerReference,
          customerReference: participation.customerReference!,
        },
      },
    });
    expect(customer).toMatchObject({ userName: 'Ada Lovelace', language: 'en' });
  });

  it('is one booking, whoever sends it how often, and only its person gets a receipt', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { defaultCapacity: 3 });
    const { choice } = await choose(calendar, page, '10:00');
    const send = (email: string) =>
      patiently(() => calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email })));
    const emails = ['a@a.example', 'b@b.example'];
    const sent = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => send(emails[index % 2]!)));
    const winner = sent.findIndex(({ status }) => status === 'fulfilled') % 2;
    expect(sent.map(({ status }) => status)).toEqual(
      sent.map((_, index) => (index % 2 === winner ? 'fulfilled' : 'rejected')),
    );
    expect((await refusal(send(emails[1 - winner]!))).code).toBe('booking_page.choice_used');
    const { receipt } = await send(emails[winner]!);
    const { booking } = await calendar.pages.getPageBooking({ providerId: page.providerId, receipt });
    expect(booking!.maskedEmail).toBe(emails[winner]!.replace(/@/, '***@'));
    expect(await participationsOf(calendar, page)).toMatchObject([{ state: 'BOOKED' }]);
  });

  it('works when the hold is over, at the same place and once', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { defaultCapacity: 3 });
    const { choice } = await choose(calendar, page, '10:00');
    await using later = await calendar.startReplicaAt('181 seconds');
    const request = newPageBooking(page, { choice });
    const [sent] = await allEnded(Array.from({ length: 10 }, () => patiently(() => later.pages.bookPageTime(request))));
    const [made, ...others] = (await participationsOf(calendar, page)).filter(({ state }) => state !== 'RESERVED');
    expect([made!.state, others]).toEqual(['BOOKED', []]);
    expect(made!.reference).toMatch(/^page-/);
    expect(made!.reference).not.toBe(`page-${choice}`);
    const shown = await later.pages.getPageBooking({ providerId: page.providerId, receipt: sent!.receipt });
    expect(shown.booking).toMatchObject({ state: BOOKED, start: at('10:00'), name: 'Ada Lovelace' });
  });

  it('is one booking even if the hold is over for one process and not for the other', async () => {
    const page = await createPage(calendar, { maxPerPerson: 100 });
    await openTimeslot(calendar, page, { defaultCapacity: 50, end: '2099-06-01T22:00' });
    await using later = await calendar.startReplicaAt('181 seconds', { RESERVATION_SWEEPER: 'off' });
    const { providerId } = page;
    const times = (await listTimes(calendar, page)).map(({ start }) => start!);
    for (const start of times) {
      const { choice } = await calendar.pages.choosePageTime({ providerId, offer: 'product', start });
      const request = newPageBooking(page, { choice }, { start });
      await allEnded([calendar, later].map(({ pages }) => pages.bookPageTime(request)));
    }
    const booked = (await participationsOf(calendar, page)).filter(({ state }) => state === 'BOOKED');
    expect(booked).toHaveLength(times.length);
  });

  it('of a request takes no seat, and is one request', async () => {
    const page = await createPage(calendar, { confirmation: 'CONFIRMATION_REQUESTED' });
    await openTimeslot(calendar, page);
    const choices = [await choose(calendar, page, '10:00'), await choose(calendar, page, '10:00')].map(
      ({ choice }) => choice,
    );
    for (const choice of [...choices, ...choices])
      await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email: `${choice}@example.com` }));
    expect((await participationsOf(calendar, page)).map(({ state }) => state)).toEqual(['REQUESTED', 'REQUESTED']);
  });

  it('at another time than was chosen releases what is held', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:00');
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { start: at('11:00') }));
    expect(timesOf(await listTimes(calendar, page))).toEqual(['10:00 anna', '10:30 anna', '11:30 anna']);
  });

  it('is refused once the place is taken, and the nearest times can be booked', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { start: '2099-06-01T08:00', end: '2099-06-01T18:00' });
    const choice = randomUUID();
    await createAppointment(calendar, { ...page.owner, resourceReference: 'anna' });
    const request = newPageBooking(page, { choice });
    expect(await refusal(calendar.pages.bookPageTime(request))).toMatchObject({ code: 'slot.unavailable' });
    const { providerId } = page;
    const near = { providerId, offer: 'product', start: at('10:00') };
    const { times } = await calendar.pages.listNearestPageTimes(near);
    expect(timesOf(times)).toEqual(['08:00', '08:30', '09:00', '09:30', '11:00', '11:30'].map((t) => `${t} anna`));
    await calendar.pages.bookPageTime({ ...request, start: times[2]!.start });
    expect(await participationsOf(calendar, page)).toMatchObject([{ state: 'BOOKED' }]);
  });

  it('finds the nearest times also if there are few, and far away', async () => {
    const page = await createPage(calendar);
    const near = { providerId: page.providerId, offer: 'product', start: at('10:00') };
    expect((await calendar.pages.listNearestPageTimes(near)).times).toEqual([]);
    const today = Temporal.Now.zonedDateTimeISO('Europe/Berlin').add({ days: 1 }).toPlainDate().toString();
    await openTimeslot(calendar, page, { start: `${today}T10:00`, end: `${today}T11:00` });
    expect(timesOf((await calendar.pages.listNearestPageTimes(near)).times)).toEqual(['10:00 anna', '10:30 anna']);
    await openTimeslot(calendar, page, { start: '2099-07-01T10:00', end: '2099-07-01T10:30' });
    expect((await calendar.pages.listNearestPageTimes(near)).times).toHaveLength(1);
  });

  it('at a time that no calendar has is refused', async () => {
    const page = await createPage(calendar);
    const { providerId } = page;
    const last = await calendar.pages.listPageTimes({ providerId, offer: 'product', date: '9999-12-31' });
    expect([last.times, last.next]).toEqual([[], undefined]);
    for (const start of ['0001-01-01T00:00Z', '9999-12-31T23:59Z', '+010000-01-01T00:00Z'].map(
      (text) => new Date(text),
    )) {
      const request = newPageBooking(page, { choice: randomUUID() }, { start });
      for (const call of [
        calendar.pages.choosePageTime({ providerId, offer: 'product', start }),
        calendar.pages.getPageChoice(request),
        calendar.pages.bookPageTime(request),
      ])
        expect((await refusal(call)).code).toBe('slot.unavailable');
    }
  });

  it('is a request once the rules say so, also of what was held before', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:00');
    await setRules(calendar, page.owner, { confirmation: 'CONFIRMATION_REQUESTED' });
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    expect((await participationsOf(calendar, page)).map(({ state }) => state)).toEqual(['REQUESTED']);
  });

  it('is made although the CRM has cancelled the hold, if the place is free', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:00');
    const participationReference = `page-${choice}`;
    const state = ParticipationState.CANCELED;
    const cancelled = { ...page.owner, participationReference, state, ignoreCapacity: false, sendMails: false };
    await calendar.participations.updateParticipation(cancelled);
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    const { booking } = await calendar.pages.getPageBooking({ providerId: page.providerId, receipt });
    expect(booking).toMatchObject({ state: BOOKED, start: at('10:00') });
  });

  it('of a choice on the page of another provider is one of its own', async () => {
    const [page, other] = [await createPage(calendar), await createPage(calendar)];
    for (const each of [page, other]) await openTimeslot(calendar, each);
    const { choice } = await choose(calendar, page, '10:00');
    await calendar.pages.bookPageTime(newPageBooking(other, { choice }));
    expect((await participationsOf(calendar, other)).map(({ state }) => state)).toEqual(['BOOKED']);
    expect((await participationsOf(calendar, page)).map(({ state }) => state)).toEqual(['RESERVED']);
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    expect((await participationsOf(calendar, page)).map(({ state }) => state)).toEqual(['BOOKED']);
  });

  it('counts a live hold within the minimum notice, and afterwards is too late', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const [held, over] = [await choose(calendar, page, '10:00'), randomUUID()];
    const minutes = Math.ceil((at('12:00').getTime() - Date.now()) / 60_000);
    await setRules(calendar, page.owner, { minimumNotice: minutes });
    expect(await refusal(calendar.pages.bookPageTime(newPageBooking(page, { choice: over })))).toMatchObject({
      code: 'slot.unavailable',
      reason: 'too_soon',
    });
    await calendar.pages.bookPageTime(newPageBooking(page, held));
    expect(await participationsOf(calendar, page)).toMatchObject([{ state: 'BOOKED' }]);
  });

  it('is refused at another price than was shown, also that of an open appointment', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const request = newPageBooking(page, { choice: randomUUID() });
    await setRules(calendar, page.owner, { offers: [newOffer({ price: { value: 50, currency: 'EUR' } })] });
    expect((await refusal(calendar.pages.bookPageTime(request))).code).toBe('booking_page.changed');
    const { place } = await calendar.pages.getPageChoice(request);
    expect(place!.price).toEqual({ value: 50, currency: 'EUR' });
    await createAppointment(calendar, {
      ...page.owner,
      acceptBookings: true,
      resourceReference: 'anna',
      productReference: 'product',
      end: '2099-06-01T10:30',
      price: { value: 7, currency: 'EUR' },
    });
    const { place: open } = await calendar.pages.getPageChoice(request);
    expect(open!.price).toEqual({ value: 7, currency: 'EUR' });
    await calendar.pages.bookPageTime({ ...request, price: open!.price });
    expect(await participationsOf(calendar, page)).toMatchObject([{ state: 'BOOKED' }]);
  });

  it('is at the time that was chosen, also if the CRM has moved what was held', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { end: '2099-06-01T10:30' });
    const { choice } = await choose(calendar, page, '10:00');
    const [held] = await participationsOf(calendar, page);
    const { participation } = await calendar.participations.getParticipation({
      ...page.owner,
      participationReference: held!.reference,
    });
    await calendar.appointments.updateAppointment({
      ...page.owner,
      appointmentReference: participation.appointmentReference,
      start: '2099-06-01T16:00',
      end: '2099-06-01T16:30',
      noAddress: false,
      sendMails: false,
    });
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    const { booking } = await calendar.pages.getPageBooking({ providerId: page.providerId, receipt });
    expect(booking!.start).toEqual(at('10:00'));
  });

  it('checks what it stores', async () => {
    const page = await createPage(calendar, { askMobile: 'ASK_MOBILE_REQUIRED' });
    await openTimeslot(calendar, page);
    const request = newPageBooking(page, { choice: 'none' }, { name: ' ', email: 'ada', note: 'x'.repeat(501) });
    const { code, errors } = await refusal(calendar.pages.bookPageTime(request));
    expect(code).toBe('booking.invalid');
    expect(errors.map(({ pointer }) => pointer)).toEqual(['/choice', '/name', '/email', '/mobile', '/note']);
  });

  // The calls of pages wait for their part of the share of their CRM, and some of so many in vain.
  it('of 60 at once at one place makes one booking, and all others find a time that books', async () => {
    const page = await createPage(calendar, { offers: [newOffer({ resources: newOffer().resources.slice(0, 1) })] });
    await openTimeslot(calendar, page, { start: '2099-06-01T00:00', end: '2099-06-03T00:00' });
    const { providerId } = page;
    const visit = async (index: number): Promise<void> => {
      let start = at('10:00');
      const withHold = index % 2 === 0;
      for (;;) {
        try {
          const chosen = withHold
            ? await patiently(() => calendar.pages.choosePageTime({ providerId, offer: 'product', start }))
            : { choice: randomUUID() };
          const booking = newPageBooking(page, chosen, { start, email: `person-${index}@example.com` });
          await patiently(() => calendar.pages.bookPageTime(booking));
          return;
        } catch (error) {
          if ((error as { code?: string }).code !== 'slot.unavailable') throw error;
          const near = { providerId, offer: 'product', start };
          const { times } = await patiently(() => calendar.pages.listNearestPageTimes(near));
          start = times[index % times.length]!.start!;
        }
      }
    };
    await allEnded(Array.from({ length: 60 }, (_, index) => visit(index)));
    const booked = (await participationsOf(calendar, page)).filter(({ state }) => state === 'BOOKED');
    expect(booked).toHaveLength(60);
    const left = await listSlots(calendar, {
      ...page.owner,
      from: '2099-06-01T00:00',
      to: '2099-06-03T00:00',
      resourceReference: 'anna',
      duration: 30,
    });
    expect(left).toHaveLength(96 - 60);
  });
});

describe('who books', () => {
  const book = async (
    page: PageUnderTest,
    time: string,
    person: { name?: string; email?: string; mobile?: string },
  ) => {
    const { choice } = await choose(calendar, page, time);
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { start: at(time), ...person }));
    const participations = await participationsOf(calendar, page);
    return participations.find(({ reference }) => reference === `page-${choice}`)!.customerId;
  };

  it('is the same customer with the same address, name and mobile number, in any form, and otherwise another', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { start: '2099-06-01T08:00', end: '2099-06-01T18:00' });
    const first = await book(page, '10:00', { mobile: '+49 170 1' });
    expect(await book(page, '10:30', { name: ' Ada  Lovelace', email: 'ADA@Example.com', mobile: '+49170-1' })).toBe(
      first,
    );
    const others = [
      await book(page, '11:00', {}),
      await book(page, '11:30', { name: 'Ada L.', mobile: '+49 170 1' }),
      await book(page, '12:00', { email: 'ada@example.org', mobile: '+49 170 1' }),
    ];
    expect(new Set([first, ...others]).size).toBe(4);
  });

  it('is never a customer of the CRM, nor one to whom the CRM has given other data since', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { start: '2099-06-01T08:00', end: '2099-06-01T18:00' });
    const own = { ...page.owner, customerReference: freshReference('customer'), userName: 'Ada Lovelace' };
    await calendar.customers.createCustomer({ ...own, email: 'ada@example.com' });
    const first = await book(page, '10:00', {});
    const { customer } = await calendar.customers.getCustomer({ crmId: 'one', key: { $case: 'id', value: first! } });
    expect(customer!.customerReference).not.toBe(own.customerReference);
    await calendar.customers.updateCustomer({
      ...page.owner,
      customerReference: customer!.customerReference,
      userName: 'Grace Hopper',
    });
    await calendar.copies.refreshCustomer({ crmId: 'one', customerId: first! });
    const second = await book(page, '10:30', {});
    expect(second).not.toBe(first);
    expect(await book(page, '11:00', {})).not.toBe(first);
  });
});

describe('what was booked', () => {
  it('is shown to whoever has sent the form, with the link of the person, until the person is erased', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { providerId } = page;
    const { choice } = await choose(calendar, page, '10:00');
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { note: 'secret' }));
    const { booking, token, resourceReference } = await calendar.pages.getPageBooking({ providerId, receipt });
    expect(booking).toMatchObject({ state: BOOKED, name: 'Ada Lovelace', maskedEmail: 'a***@example.com' });
    expect(resourceReference).toBe('anna');
    expect((await calendar.persons.getOwnBooking({ token: token! })).booking).toEqual({
      ...booking,
      now: expect.any(Date) as Date,
    });
    expect((await calendar.pages.getPageChoice(newPageBooking(page, { choice }))).place).toBeUndefined();
    const [made] = await participationsOf(calendar, page);
    await calendar.removals.removeCustomer({
      crmId: 'one',
      customerId: made!.customerId!,
      ignoreFutureAppointments: true,
    });
    expect((await refusal(calendar.pages.getPageBooking({ providerId, receipt }))).code).toBe('link.not_found');
    expect(JSON.stringify(await participationsOf(calendar, page))).not.toContain('secret');
  });

  it('has no link if the rules say so, and is shown by no other token and on the page of no other provider', async () => {
    const page = await createPage(calendar, { selfService: false });
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:00');
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    const { providerId } = page;
    expect((await calendar.pages.getPageBooking({ providerId, receipt })).token).toBeUndefined();
    expect((await refusal(calendar.persons.getOwnBooking({ token: receipt }))).code).toBe('link.not_found');
    const other = await createPage(calendar);
    const link = await calendar.participations.getParticipationLink({
      ...page.owner,
      participationReference: `page-${choice}`,
    });
    for (const request of [
      { providerId: other.providerId, receipt },
      { providerId, receipt: link.token },
      { providerId, receipt: choice },
      { providerId, receipt: '' },
    ])
      expect((await refusal(calendar.pages.getPageBooking(request))).code).toBe('link.not_found');
  });

  it('is no longer shown once its address is another one', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { providerId } = page;
    const { choice } = await choose(calendar, page, '10:00');
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    const { participation } = await calendar.participations.getParticipation({
      ...page.owner,
      participationReference: `page-${choice}`,
    });
    await calendar.customers.updateCustomer({
      ...page.owner,
      customerReference: participation.customerReference!,
      email: 'grace@example.com',
    });
    expect((await refusal(calendar.pages.getPageBooking({ providerId, receipt }))).code).toBe('link.not_found');
  });
});
