import { eventually } from '@scheduling/testing';
import { type QueryExecutorProvider, sql } from 'kysely';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bookingCall, type NewBooking } from '../src/slot/book-slot.ts';
import {
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
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
  setRules,
  timesOf,
  choose,
  participationsOf,
} from './page-under-test.ts';

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

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
    const { choice, place } = await choose(calendar, page, '10:30');
    expect(place).toMatchObject({ start: at('10:30'), end: at('11:00'), resourceReference: 'anna' });
    expect(place).toMatchObject({ price: { value: 45, currency: 'EUR' }, description: 'Massage' });
    const secondsLeft = (place!.heldUntil!.getTime() - Date.now()) / 1_000;
    expect(secondsLeft).toBeGreaterThan(150);
    expect(secondsLeft).toBeLessThanOrEqual(180);
    expect(await participationsOf(calendar, page)).toMatchObject([{ reference: `page-${choice}`, state: 'RESERVED' }]);
    expect(timesOf(await listTimes(calendar, page))).not.toContain('10:30 anna');
    expect(timesOf(await listTimes(calendar, page, { choice }))).toContain('10:30 anna');
    expect(await refusal(choose(calendar, page, '10:30'))).toMatchObject({ code: 'slot.unavailable', reason: 'taken' });
  });

  it('takes another resource if the first one is taken, unless one is named', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { end: '2099-06-01T16:00' });
    await openTimeslot(calendar, page, { end: '2099-06-01T16:00', resourceReference: 'ben' });
    const [first, second] = [await choose(calendar, page, '10:00'), await choose(calendar, page, '10:00')];
    expect([first, second].map(({ place }) => place!.resourceReference)).toEqual(['anna', 'ben']);
    await choose(calendar, page, '11:00', { resourceReference: 'anna' });
    expect((await refusal(choose(calendar, page, '11:00', { resourceReference: 'anna' }))).code).toBe(
      'slot.unavailable',
    );
  });

  it('that is made again stays, and another one releases it', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page);
    const { choice, place } = await choose(calendar, page, '10:30');
    expect(await choose(calendar, page, '10:30', { choice })).toMatchObject({ choice, place });
    const other = await choose(calendar, page, '11:00', { choice });
    expect(other.choice).not.toBe(choice);
    expect(timesOf(await listTimes(calendar, page))).toEqual(['10:00 anna', '10:30 anna', '11:30 anna']);
    expect(await participationsOf(calendar, page)).toMatchObject([{ reference: `page-${other.choice}` }]);
  });

  it('that overlaps the one before is possible, because that one is released', async () => {
    const page = await createPage(calendar, { offers: [newOffer({ duration: 60 })] });
    await openTimeslot(calendar, page);
    const { choice } = await choose(calendar, page, '10:30');
    expect(timesOf(await listTimes(calendar, page, { choice }))).toEqual(['10:00 anna', '10:30 anna', '11:00 anna']);
    expect((await choose(calendar, page, '10:00', { choice })).place!.heldUntil).toBeDefined();
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
    const { choice } = await choose(calendar, page, '10:00');
    expect(await listTimes(calendar, page)).toEqual([]);
    expect(timesOf(await listTimes(calendar, page, { choice }))).toEqual(['10:00 anna']);
  });

  it('holds nothing if the provider confirms bookings', async () => {
    const page = await createPage(calendar, { confirmation: 'CONFIRMATION_REQUESTED' });
    await openTimeslot(calendar, page);
    const [first, second] = [await choose(calendar, page, '10:00'), await choose(calendar, page, '10:00')];
    expect([first.place!.heldUntil, second.place!.heldUntil]).toEqual([undefined, undefined]);
    expect(await participationsOf(calendar, page)).toEqual([]);
  });

  it('holds at most a quarter of the places of a day, and ten of a provider; beyond that, bookings work without', async () => {
    const page = await createPage(calendar);
    await openTimeslot(calendar, page, { end: '2099-06-01T14:00' });
    const holds = [];
    for (const time of ['10:00', '10:30', '11:00', '11:30']) holds.push(await choose(calendar, page, time));
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
    expect(await participationsOf(calendar, page)).toContainEqual(expect.objectContaining({ state: 'BOOKED' }));
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
