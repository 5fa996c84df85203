import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { events } from '@scheduling/events';
import { eventually, patiently } from '@scheduling/testing';
import { type QueryExecutorProvider, sql } from 'kysely';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bookingCall, type NewBooking } from '../src/slot/book-slot.ts';
import {
  allEnded,
  type CalendarUnderTest,
  countWaiting,
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
} from './page-under-test.ts';
import { listSlots } from './slots-under-test.ts';

const { BOOKED } = ParticipationState;

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

const choose = (
  { providerId }: PageUnderTest,
  time: string,
  others: { resourceReference?: string; choice?: string } = {},
) => calendar.pages.choosePageTime({ providerId, offer: 'product', start: at(time), ...others });

/** In the order in which they were made. */
async function participationsOf({ owner }: PageUnderTest) {
  return calendar.database.kysely
    .selectFrom('participation')
    .innerJoin('appointment', (join) =>
      join
        .onRef('appointment.crmId', '=', 'participation.crmId')
        .onRef('appointment.id', '=', 'participation.appointmentId'),
    )
    .innerJoin('provider', (join) =>
      join.onRef('provider.crmId', '=', 'appointment.crmId').onRef('provider.id', '=', 'appointment.providerId'),
    )
    .select(['participation.reference', 'participation.customerId', 'participation.state', 'participation.note'])
    .where('provider.reference', '=', owner.providerReference)
    .orderBy('participation.id')
    .execute();
}

describe('a page', () => {
  it('says what the rules say of it, by the id of the provider', async () => {
    const page = await createPage(calendar, {
      confirmation: 'CONFIRMATION_REQUESTED',
      askMobile: 'ASK_MOBILE_OPTIONAL',
      embedOn: { origins: ['https://a.example'] },
    });
    const { page: found } = await calendar.pages.getBookingPage(page);
    expect(found).toMatchObject({
      providerId: page.providerId,
      timeZone: 'Europe/Berlin',
      confirmation: 'CONFIRMATION_REQUESTED',
      askMobile: 'ASK_MOBILE_OPTIONAL',
      embedOn: ['https://a.example'],
      offers: [{ key: 'product', name: 'Massage', duration: 30, price: { value: 45, currency: 'EUR' } }],
    });
  });

  it('is not found without the rule, without rules, and for what is no provider', async () => {
    const page = await createPage(calendar);
    await setRules(calendar, page.owner, { page: false });
    for (const providerId of [page.providerId, randomUUID(), 'nobody', ''])
      expect((await refusal(calendar.pages.getBookingPage({ providerId }))).code).toBe('booking_page.not_found');
  });

  it('distinguishes offers of the same product, whatever their order and their prices', async () => {
    const [short, long] = [newOffer(), newOffer({ name: 'Long massage', duration: 60 })];
    const page = await createPage(calendar, {
      offers: [short, long, newOffer({ productReference: 'other', name: 'Other' })],
    });
    const keysOf = async (): Promise<Map<string, string>> => {
      const { page: found } = await calendar.pages.getBookingPage(page);
      return new Map(found!.offers.map(({ name, key, duration }) => [`${name} ${duration}`, key]));
    };
    const keys = await keysOf();
    expect([...keys.values()]).toEqual([
      expect.stringMatching(/^product~[0-9a-f]{8}$/),
      expect.stringMatching(/^product~[0-9a-f]{8}$/),
      'other',
    ]);
    await setRules(calendar, page.owner, { offers: [{ ...long, price: undefined }, short] });
    expect((await keysOf()).get('Long massage 60')).toBe(keys.get('Long massage 60'));
    await setRules(calendar, page.owner, { offers: [long, long, short] });
    const { page: equal } = await calendar.pages.getBookingPage(page);
    expect(new Set(equal!.offers.map(({ key }) => key)).size).toBe(3);
    expect(equal!.offers[0]!.key).toBe(keys.get('Long massage 60'));
  });

  it('refuses an offer or a resource that it does not have', async () => {
    const page = await createPage(calendar);
    for (const query of [{ offer: 'other' }, { resourceReference: 'carl' }])
      expect((await refusal(listTimes(calendar, page, query))).code).toBe('booking_page.offer_not_found');
  });
});

describe('a week', () => {
  it('has the free places and the open appointments that are as long as the offer', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const open = { ...page.owner, acceptBookings: true, capacity: 5, resourceReference: 'ben' };
    await createAppointment(calendar, { ...open, productReference: 'product', end: '2099-06-01T10:30' });
    await createAppointment(calendar, {
      ...open,
      productReference: 'product',
      start: '2099-06-01T14:00',
      end: '2099-06-01T15:00',
    });
    await createAppointment(calendar, { ...open, productReference: 'other', end: '2099-06-01T10:30' });
    expect(timesOf(await listTimes(calendar, page))).toEqual(['10:00 anna', '10:30 anna', '11:00 anna', '11:30 anna']);
    expect(timesOf(await listTimes(calendar, page, { resourceReference: 'ben' }))).toEqual(['10:00 ben']);
  });

  it('offers at each start the resource with the most times on that day, otherwise the first of the offer', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    await openTimeslot(calendar, page, { resourceReference: 'ben', end: '2099-06-01T13:00' });
    await openTimeslot(calendar, page, { start: '2099-06-02T10:00', end: '2099-06-02T10:30' });
    await openTimeslot(calendar, page, {
      resourceReference: 'ben',
      start: '2099-06-02T10:00',
      end: '2099-06-02T10:30',
    });
    expect(timesOf(await listTimes(calendar, page))).toEqual([
      ...['10:00', '10:30', '11:00', '11:30', '12:00', '12:30'].map((time) => `${time} ben`),
      '10:00 anna',
    ]);
  });

  it('without a date is the first that has a time, and an empty one knows the next', async () => {
    const page = await createPage(calendar, { offers: [newOffer({ duration: 60 })] });
    const { providerId } = page;
    expect(await calendar.pages.listPageTimes({ providerId, offer: 'product' })).toMatchObject({
      monday: undefined,
      times: [],
    });
    const days = (count: number) => Temporal.Now.zonedDateTimeISO('Europe/Berlin').add({ days: count }).toPlainDate();
    const date = days(20);
    await openTimeslot(calendar, page, { start: `${date.toString()}T10:00`, end: `${date.toString()}T11:00` });
    const found = await calendar.pages.listPageTimes({ providerId, offer: 'product' });
    expect(found.monday).toBe(date.subtract({ days: date.dayOfWeek - 1 }).toString());
    expect(found.times).toHaveLength(1);
    const today = await calendar.pages.listPageTimes({ providerId, offer: 'product', date: days(0).toString() });
    expect([today.times, today.next]).toEqual([[], found.times[0]!.start]);
  });

  it('of a provider whose clocks are set back has both hours', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { start: '2098-10-26T00:00Z', end: '2098-10-26T02:00Z', raster: 60 });
    await setRules(calendar, page.owner, { offers: [newOffer({ duration: 60 })] });
    const times = await listTimes(calendar, page, { date: '2098-10-26' });
    expect(times.map(({ start }) => start!.toISOString())).toEqual([
      '2098-10-26T00:00:00.000Z',
      '2098-10-26T01:00:00.000Z',
    ]);
    expect(timesOf(times)).toEqual(['02:00 anna', '02:00 anna']);
  });
});

describe('a choice', () => {
  it('holds its place, which is nobody else’s until it is over', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice, place } = await choose(page, '10:30');
    expect(place).toMatchObject({ start: at('10:30'), end: at('11:00'), resourceReference: 'anna' });
    expect(place).toMatchObject({ price: { value: 45, currency: 'EUR' }, description: 'Massage' });
    const secondsLeft = (place!.heldUntil!.getTime() - Date.now()) / 1_000;
    expect(secondsLeft).toBeGreaterThan(150);
    expect(secondsLeft).toBeLessThanOrEqual(180);
    expect(await participationsOf(page)).toMatchObject([{ reference: `page-${choice}`, state: 'RESERVED' }]);
    expect(timesOf(await listTimes(calendar, page))).not.toContain('10:30 anna');
    expect(timesOf(await listTimes(calendar, page, { choice }))).toContain('10:30 anna');
    expect(await refusal(choose(page, '10:30'))).toMatchObject({ code: 'slot.unavailable', reason: 'taken' });
  });

  it('takes another resource if the first one is taken, unless one is named', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { end: '2099-06-01T16:00' });
    await openTimeslot(calendar, page, { end: '2099-06-01T16:00', resourceReference: 'ben' });
    const [first, second] = [await choose(page, '10:00'), await choose(page, '10:00')];
    expect([first, second].map(({ place }) => place!.resourceReference)).toEqual(['anna', 'ben']);
    await choose(page, '11:00', { resourceReference: 'anna' });
    expect((await refusal(choose(page, '11:00', { resourceReference: 'anna' }))).code).toBe('slot.unavailable');
  });

  it('that is made again stays, and another one releases it', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice, place } = await choose(page, '10:30');
    expect(await choose(page, '10:30', { choice })).toMatchObject({ choice, place });
    const other = await choose(page, '11:00', { choice });
    expect(other.choice).not.toBe(choice);
    expect(timesOf(await listTimes(calendar, page))).toEqual(['10:00 anna', '10:30 anna', '11:30 anna']);
    expect(await participationsOf(page)).toMatchObject([{ reference: `page-${other.choice}` }]);
  });

  it('that overlaps the one before is possible, because that one is released', async () => {
    const page = await createPage(calendar, { offers: [newOffer({ duration: 60 })] });
    await openTimeslot(calendar, page);
    const { choice } = await choose(page, '10:30');
    expect(timesOf(await listTimes(calendar, page, { choice }))).toEqual(['10:00 anna', '10:30 anna', '11:00 anna']);
    expect((await choose(page, '10:00', { choice })).place!.heldUntil).toBeDefined();
  });

  it('of the last seat of an open appointment counts as free for whoever made it', async () => {
    const page = await createPage(calendar);
    await createAppointment(calendar, {
      ...page.owner,
      acceptBookings: true,
      resourceReference: 'anna',
      productReference: 'product',
      end: '2099-06-01T10:30',
    });
    const { choice } = await choose(page, '10:00');
    expect(await listTimes(calendar, page)).toEqual([]);
    expect(timesOf(await listTimes(calendar, page, { choice }))).toEqual(['10:00 anna']);
  });

  it('holds nothing if the provider confirms bookings', async () => {
    const page = await createPage(calendar, { confirmation: 'CONFIRMATION_REQUESTED' });
    await openTimeslot(calendar, page);
    const [first, second] = [await choose(page, '10:00'), await choose(page, '10:00')];
    expect([first.place!.heldUntil, second.place!.heldUntil]).toEqual([undefined, undefined]);
    expect(await participationsOf(page)).toEqual([]);
  });

  it('holds at most a quarter of the places of a day, and ten of a provider; beyond that, bookings work without', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { end: '2099-06-01T14:00' });
    const holds = [];
    for (const time of ['10:00', '10:30', '11:00', '11:30']) holds.push(await choose(page, time));
    expect(holds.map(({ place }) => place!.heldUntil !== undefined)).toEqual([true, true, false, false]);
    for (const day of ['02', '03', '04', '05']) {
      const [start, end] = [`2099-06-${day}T00:00`, `2099-06-${day}T10:00`];
      await openTimeslot(calendar, page, { start, end });
    }
    const chosen = [];
    for (const { start } of (await listTimes(calendar, page)).filter((time) => time.start! > at('23:00')))
      chosen.push(await calendar.pages.choosePageTime({ providerId: page.providerId, offer: 'product', start }));
    expect(chosen.filter(({ place }) => place!.heldUntil !== undefined)).toHaveLength(8);
    const { choice, place } = holds[2]!;
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { start: place!.start }));
    expect(await participationsOf(page)).toContainEqual(expect.objectContaining({ state: 'BOOKED' }));
  });

  it('is counted before the next one, also of another resource', async () => {
    const page = await createPage(calendar);
    const hold = async (db: QueryExecutorProvider, resourceReference: string): Promise<{ notHeld?: true }> => {
      const timeslotReference = await openTimeslot(calendar, page, { resourceReference });
      const { crmId } = page.owner;
      const place = { timeslotReference, start: at('10:00').toISOString(), productReference: 'product' };
      const reference = `page-${randomUUID()}`;
      const booking = { ...page.owner, place, reference, state: 'RESERVED', ignoreNotice: false, sendMails: false };
      const { request } = bookingCall({ timeZone: 'Europe/Berlin' }, randomUUIDv7(), booking as NewBooking);
      const limits = { maxHolds: 1, dayStart: at('00:00'), dayEnd: at('23:00'), freePlaces: 100 };
      const text = JSON.stringify({ ...request, ...limits, crmId, providerId: page.providerId });
      const { rows } = await sql<{
        answer: { notHeld?: true };
      }>`SELECT hold_page_time(${text}::jsonb) AS answer`.execute(db);
      return rows[0]!.answer;
    };
    const waiting = await calendar.database.transaction(async (tx) => {
      expect(await hold(tx, 'anna')).not.toHaveProperty('notHeld');
      const second = hold(calendar.database.kysely, 'ben');
      await eventually(async () => expect(await countWaiting(calendar, '%hold_page_time%')).toBe(1));
      return { second };
    });
    expect(await waiting.second).toHaveProperty('notHeld', true);
  });
});

describe('booking', () => {
  it('makes the hold a booking, with a mail, for a customer of its own', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(page, '10:00');
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
    const { choice } = await choose(page, '10:00');
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
    expect(await participationsOf(page)).toMatchObject([{ state: 'BOOKED' }]);
  });

  it('works when the hold is over, at the same place and once', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { defaultCapacity: 3 });
    const { choice } = await choose(page, '10:00');
    await using later = await calendar.startReplicaAt('181 seconds');
    const request = newPageBooking(page, { choice });
    const [sent] = await allEnded(Array.from({ length: 10 }, () => patiently(() => later.pages.bookPageTime(request))));
    const [made, ...others] = (await participationsOf(page)).filter(({ state }) => state !== 'RESERVED');
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
    const booked = (await participationsOf(page)).filter(({ state }) => state === 'BOOKED');
    expect(booked).toHaveLength(times.length);
  });

  it('of a request takes no seat, and is one request', async () => {
    const page = await createPage(calendar, { confirmation: 'CONFIRMATION_REQUESTED' });
    await openTimeslot(calendar, page);
    const choices = [await choose(page, '10:00'), await choose(page, '10:00')].map(({ choice }) => choice);
    for (const choice of [...choices, ...choices])
      await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { email: `${choice}@example.com` }));
    expect((await participationsOf(page)).map(({ state }) => state)).toEqual(['REQUESTED', 'REQUESTED']);
  });

  it('at another time than was chosen releases what is held', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(page, '10:00');
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
    expect(await participationsOf(page)).toMatchObject([{ state: 'BOOKED' }]);
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
    const { choice } = await choose(page, '10:00');
    await setRules(calendar, page.owner, { confirmation: 'CONFIRMATION_REQUESTED' });
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    expect((await participationsOf(page)).map(({ state }) => state)).toEqual(['REQUESTED']);
  });

  it('is made although the CRM has cancelled the hold, if the place is free', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice } = await choose(page, '10:00');
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
    const { choice } = await choose(page, '10:00');
    await calendar.pages.bookPageTime(newPageBooking(other, { choice }));
    expect((await participationsOf(other)).map(({ state }) => state)).toEqual(['BOOKED']);
    expect((await participationsOf(page)).map(({ state }) => state)).toEqual(['RESERVED']);
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    expect((await participationsOf(page)).map(({ state }) => state)).toEqual(['BOOKED']);
  });

  it('counts a live hold within the minimum notice, and afterwards is too late', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const [held, over] = [await choose(page, '10:00'), randomUUID()];
    const minutes = Math.ceil((at('12:00').getTime() - Date.now()) / 60_000);
    await setRules(calendar, page.owner, { minimumNotice: minutes });
    expect(await refusal(calendar.pages.bookPageTime(newPageBooking(page, { choice: over })))).toMatchObject({
      code: 'slot.unavailable',
      reason: 'too_soon',
    });
    await calendar.pages.bookPageTime(newPageBooking(page, held));
    expect(await participationsOf(page)).toMatchObject([{ state: 'BOOKED' }]);
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
    expect(await participationsOf(page)).toMatchObject([{ state: 'BOOKED' }]);
  });

  it('is at the time that was chosen, also if the CRM has moved what was held', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { end: '2099-06-01T10:30' });
    const { choice } = await choose(page, '10:00');
    const [held] = await participationsOf(page);
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
    const booked = (await participationsOf(page)).filter(({ state }) => state === 'BOOKED');
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
    const { choice } = await choose(page, time);
    await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { start: at(time), ...person }));
    const participations = await participationsOf(page);
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
      const first = newPageBooking(page, await choose(page, '11:00'), { start: at('11:00'), email });
      expect((await calendar.pages.bookPageTime(first)).pending).toBe(false);
    }
    const { choice } = await choose(page, '10:00');
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
    expect(await participationsOf(page)).toContainEqual(expect.objectContaining({ state: 'BOOKED', note: 'Hello' }));
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
      const { choice } = await choose(page, time);
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
    expect(await participationsOf(page)).toHaveLength(1);
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
    const [made] = await participationsOf(page);
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
    expect(await participationsOf(page)).toHaveLength(2);
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
    const { choice } = await choose(page, '10:00');
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
    const { choice } = await choose(page, '10:00');
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

describe('what was booked', () => {
  it('is shown to whoever has sent the form, with the link of the person, until the person is erased', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { providerId } = page;
    const { choice } = await choose(page, '10:00');
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }, { note: 'secret' }));
    const { booking, token, resourceReference } = await calendar.pages.getPageBooking({ providerId, receipt });
    expect(booking).toMatchObject({ state: BOOKED, name: 'Ada Lovelace', maskedEmail: 'a***@example.com' });
    expect(resourceReference).toBe('anna');
    expect((await calendar.persons.getOwnBooking({ token: token! })).booking).toEqual({
      ...booking,
      now: expect.any(Date) as Date,
    });
    expect((await calendar.pages.getPageChoice(newPageBooking(page, { choice }))).place).toBeUndefined();
    const [made] = await participationsOf(page);
    await calendar.removals.removeCustomer({
      crmId: 'one',
      customerId: made!.customerId!,
      ignoreFutureAppointments: true,
    });
    expect((await refusal(calendar.pages.getPageBooking({ providerId, receipt }))).code).toBe('link.not_found');
    expect(JSON.stringify(await participationsOf(page))).not.toContain('secret');
  });

  it('has no link if the rules say so, and is shown by no other token and on the page of no other provider', async () => {
    const page = await createPage(calendar, { selfService: false });
    await openTimeslot(calendar, page);
    const { choice } = await choose(page, '10:00');
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
    const { choice } = await choose(page, '10:00');
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
