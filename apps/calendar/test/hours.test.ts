import type { Hours } from '@scheduling/contracts/calendar/v1';
import { eventually, sumSamples } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CalendarSchema } from '../src/db/schema.ts';
import { makeInZone } from '../src/hours/make-hours-due.ts';
import { dateOf, makeClockAdjustable, type SetRealClock, textOf, wakeReplicas } from './adjustable-clock.ts';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  freshReference,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { listTimeslots, newHours, newWindow, putHours, type RoomKey, type TimeslotJson } from './hours-under-test.ts';
import { customerOf, newBooking } from './slots-under-test.ts';

/** The days that are made, and what happens while hours are being set. */

let calendar: CalendarUnderTest;
let replicas: Calendar[];
let setRealClock: SetRealClock;
let room: RoomKey;
const stack = new AsyncDisposableStack();
const dayMinutes = 24 * 60;

beforeAll(async () => {
  calendar = stack.use(await startCalendar());
  replicas = [calendar, stack.use(await calendar.startReplica())];
  setRealClock = await makeClockAdjustable(calendar);
}, 180_000);
afterAll(() => stack.disposeAsync());
beforeEach(async () => {
  await setRealClock(0);
  room = { ...owned, resourceReference: freshReference('resource') };
});

const db = (): Kysely<CalendarSchema> => calendar.database.kysely;

/** Also those of the past month. */
const listAll = (key = room): Promise<TimeslotJson[]> =>
  listTimeslots(calendar, key, new Date(textOf(-30 * dayMinutes)), new Date(textOf(430 * dayMinutes)));

const starts = (timeslots: TimeslotJson[]): string[] => timeslots.map(({ start }) => start);

/** On every day, so that a day is a timeslot. */
const daily = (overrides: Partial<Hours> = {}): Hours =>
  newHours({ weekly: [newWindow({ from: '00:00', to: '24:00', raster: 60 })], aheadDays: 7, ...overrides });

/** Holds the timeslot back from others during the work. */
async function whileLocked(reference: string, work: () => Promise<void>, { crmId } = room): Promise<void> {
  await db()
    .transaction()
    .execute(async (tx) => {
      await sql`SELECT FROM timeslot WHERE crm_id = ${crmId} AND reference = ${reference} FOR UPDATE`.execute(tx);
      await work();
    });
}

const untilWaiting = (calls: number): Promise<void> =>
  eventually(async () => expect(await countWaiting(calendar)).toBe(calls));

describe('the days of opening hours', () => {
  it('are made one after the other as time passes, once, however many replicas do it', async () => {
    await putHours(calendar, room, daily());
    const made = starts(await listAll());
    expect(made).toHaveLength(7);
    for (const day of [1, 2, 3]) {
      await setRealClock(day * dayMinutes);
      await wakeReplicas(replicas);
      await eventually(async () => expect(await listAll()).toHaveLength(7 + day));
    }
    const later = starts(await listAll());
    expect(later.slice(0, 7)).toEqual(made);
    expect(new Set(later).size).toBe(10);
  });

  it('are made up for when nobody has made any for longer than they reach ahead', async () => {
    await putHours(calendar, room, daily());
    await setRealClock(20 * dayMinutes);
    await wakeReplicas(replicas);
    // Of the days in between there are none.
    await eventually(async () => expect(await listAll()).toHaveLength(14));
    const { json } = await calendar.hours.getHours(room);
    const [, , , , , , , ...after] = await listAll();
    const { madeUntil } = JSON.parse(json.toString()) as { madeUntil: string };
    expect(after.at(-1)!.end.slice(0, 10)).toBe(madeUntil);
  });

  it('that cannot be made do not stop others of the CRM', async () => {
    const broken = { ...owned, providerReference: 'p2', resourceReference: room.resourceReference };
    const setZone = (zone: string) =>
      sql`UPDATE provider SET time_zone = ${zone} WHERE crm_id = ${owned.crmId} AND reference = 'p2'`.execute(db());
    await putHours(calendar, broken, daily());
    await putHours(calendar, room, daily());
    await setZone('Nowhere/Nowhere');
    try {
      await setRealClock(dayMinutes);
      await wakeReplicas(replicas);
      await eventually(async () => expect(await listAll()).toHaveLength(8));
      expect(await listAll(broken)).toHaveLength(7);
    } finally {
      await setZone('Europe/Berlin');
    }
    // It is not tried again for a minute.
    await putHours(calendar, broken, daily());
    expect(await listAll(broken)).toHaveLength(8);
  });

  it('are complete within seconds if there are too many for a request', { timeout: 60_000 }, async () => {
    const weekly = Array.from({ length: 50 }, (_, index) =>
      newWindow({ from: `08:${String(index).padStart(2, '0')}`, to: '20:00' }),
    );
    const { hours } = await putHours(calendar, room, newHours({ weekly, aheadDays: 110 }));
    const lastDay = async (): Promise<string> => {
      const { json } = await calendar.hours.getHours(room);
      return (JSON.parse(json.toString()) as { madeUntil: string }).madeUntil;
    };
    const days = (until: string): number =>
      Temporal.PlainDate.from(hours.madeUntil!).until(Temporal.PlainDate.from(until)).days;
    await eventually(async () => expect(days(await lastDay())).toBeGreaterThan(5));
    // Today some may be over.
    const made = await listAll();
    expect(made.length).toBeGreaterThanOrEqual(109 * 50);
    const atOnce = made.filter(({ start }) => start.slice(0, 10) <= hours.madeUntil!);
    expect(atOnce.length).toBeGreaterThanOrEqual(5_000);
    expect(atOnce.length).toBeLessThan(5_050);
  });
});

describe('while hours are being set', () => {
  const placeIn = ({ reference, start }: TimeslotJson) => {
    const value = { timeslotReference: reference, start, productReference: 'product@test' };
    return { $case: 'timeslot' as const, value };
  };

  it('a booking that waits for it is rejected as closed', async () => {
    await putHours(calendar, room, daily());
    const [, tomorrow, dayAfter] = await listAll();
    const answers: Promise<unknown>[] = [];
    await whileLocked(dayAfter!.reference, async () => {
      answers.push(calendar.hours.deleteHours(room));
      await untilWaiting(1);
      answers.push(refusal(replicas[1]!.bookings.bookSlot(newBooking(placeIn(tomorrow!)))));
      await untilWaiting(2);
    });
    const [, rejection] = await allEnded(answers);
    expect(rejection).toMatchObject({ code: 'slot.unavailable', reason: 'closed' });
    expect(await listAll()).toEqual([]);
  });

  it('a booking for which it waits keeps its timeslot, and is named', async () => {
    await putHours(calendar, room, daily());
    const [, tomorrow] = await listAll();
    const customer = await createCustomer(calendar);
    const booked = Promise.withResolvers<void>();
    const setting = Promise.withResolvers<void>();
    const booking = db()
      .transaction()
      .execute(async (tx) => {
        await sql`SELECT FROM timeslot WHERE crm_id = ${room.crmId} AND reference = ${tomorrow!.reference} FOR NO KEY UPDATE`.execute(
          tx,
        );
        booked.resolve();
        await setting.promise;
        // In the transaction that has the lock, as a booking.
        await sql`
          INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
          SELECT crm_id, provider_id, 'appointment-' || reference, resource_reference, 'product@test', starts_at, starts_at + interval '1 hour', 1, 0, true, ''
            FROM timeslot WHERE crm_id = ${room.crmId} AND reference = ${tomorrow!.reference}`.execute(tx);
      });
    await booked.promise;
    const deletion = calendar.hours.deleteHours(room);
    await untilWaiting(1);
    setting.resolve();
    await booking;
    const reference = `appointment-${tomorrow!.reference}`;
    expect(await deletion).toMatchObject({ conflicts: { appointmentReferences: [reference], total: 1 } });
    expect(await listAll()).toMatchObject([{ reference: tomorrow!.reference, state: 'CREATED', fromHours: true }]);
    expect(
      await refusal(calendar.bookings.bookSlot(newBooking(placeIn(tomorrow!), customerOf(customer)))),
    ).toMatchObject({ code: 'slot.unavailable', reason: 'closed' });
  });

  it('the clock of a sandbox waits, so that the days are those of its new time', async () => {
    const key = { ...room, crmId: 'sandbox' };
    const { crmId } = key;
    const setClock = (minutes: number) => calendar.clocks.setSandboxClock({ crmId, now: dateOf(minutes) });
    await setClock(0);
    await putHours(calendar, key, daily());
    const [, tomorrow] = await listAll(key);
    await createAppointment(calendar, { ...key, start: tomorrow!.start, end: tomorrow!.end });
    // Without a row that others could lock.
    await calendar.hours.deleteHours(key);
    const answers: Promise<unknown>[] = [];
    const work = async (): Promise<void> => {
      answers.push(calendar.hours.putHours({ ...key, hours: daily() }));
      await untilWaiting(1);
      answers.push(setClock(30 * dayMinutes));
      await untilWaiting(2);
    };
    await whileLocked(tomorrow!.reference, work, key);
    await allEnded(answers);
    await eventually(async () => expect(await listAll(key)).toHaveLength(14));
    const { json } = await calendar.hours.getHours(key);
    const { madeUntil } = JSON.parse(json.toString()) as { madeUntil: string };
    expect(madeUntil > textOf(35 * dayMinutes).slice(0, 10)).toBe(true);
  });

  /** As the event about it does. */
  const moveToKolkata = ({ crmId, providerReference }: RoomKey): Promise<void> =>
    calendar.database.transaction(async (tx) => {
      const { id: providerId, timeZone } = await tx
        .updateTable('provider')
        .set(({ eb }) => ({ timeZone: 'Asia/Kolkata', version: eb('version', '+', 1) }))
        .where('crmId', '=', crmId)
        .where('reference', '=', providerReference)
        .returningAll()
        .executeTakeFirstOrThrow();
      await makeInZone(tx, { crmId, providerId, timeZone });
    });

  it('another time zone of the provider waits, so that the timeslots end up in it', async () => {
    const key = { ...room, providerReference: freshReference('provider') };
    await calendar.identity.createProvider({
      crmId: key.crmId,
      reference: key.providerReference,
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Moving',
      timeZone: 'Europe/Berlin',
    });
    await putHours(calendar, key, daily());
    const [, tomorrow] = await listAll(key);
    const { crmId, providerReference, resourceReference } = key;
    await createAppointment(calendar, {
      crmId,
      providerReference,
      resourceReference,
      start: tomorrow!.start,
      end: tomorrow!.end,
    });
    // Without a row that others could lock.
    await calendar.hours.deleteHours(key);
    const answers: Promise<unknown>[] = [];
    await whileLocked(tomorrow!.reference, async () => {
      answers.push(calendar.hours.putHours({ ...key, hours: daily() }));
      await untilWaiting(1);
      answers.push(moveToKolkata(key));
      await untilWaiting(2);
    });
    await allEnded(answers);
    await eventually(async () => {
      const shown = (await listAll(key)).filter(({ state }) => state === 'BOOKABLE');
      expect(shown).toHaveLength(7);
      expect(new Set(shown.map(({ start }) => start.slice(11)))).toEqual(new Set(['18:30:00Z']));
    });
  });
});

describe('a timeslot that the CRM has changed', () => {
  it('stands for its window until the hours do not have it any more', async () => {
    const evening = { weekly: [newWindow({ from: '20:00', to: '21:00' })], aheadDays: 3 };
    await putHours(calendar, room, daily({ aheadDays: 3 }));
    const { reference } = (await listAll()).at(-1)!;
    await calendar.timeslots.updateTimeslot({ ...room, timeslotReference: reference, defaultCapacity: 5 });
    await putHours(calendar, room, daily({ aheadDays: 3 }));
    expect(await listAll()).toHaveLength(3);
    await putHours(calendar, room, newHours(evening));
    await putHours(calendar, room, daily({ aheadDays: 3 }));
    const last = (await listAll()).slice(-2);
    expect(last.filter(({ fromHours }) => fromHours)).toHaveLength(1);
    expect(last[0]!.start).toBe(last[1]!.start);
    expect(last.map(({ reference: each }) => each)).toContain(reference);
  });
});

describe('hours of several resources', () => {
  it('are rejected if they have too many timeslots together, before or afterwards', { timeout: 60_000 }, async () => {
    const weekly = Array.from({ length: 50 }, (_, index) =>
      newWindow({ from: `08:${String(index).padStart(2, '0')}`, to: '20:00' }),
    );
    const resourceReferences = ['a', 'b', 'c'].map((name) => `${name}-${room.resourceReference}`);
    const put = (resources: string[], hours: Hours) =>
      calendar.hours.putHoursOfResources({ ...owned, resourceReferences: resources, hours });
    const most = newHours({ weekly, aheadDays: 400 });
    const tooMany = {
      code: 'hours.invalid',
      errors: [{ pointer: '/resourceReferences', detail: expect.stringContaining('40,000') as string }],
    };
    expect(await refusal(put(resourceReferences, most))).toMatchObject(tooMany);
    expect(await listAll({ ...room, resourceReference: resourceReferences[0]! })).toEqual([]);
    for (const resource of resourceReferences) await put([resource], most);
    const count = () =>
      sql<{
        count: number;
      }>`SELECT count(*) FROM timeslot WHERE resource_reference = ANY (${resourceReferences})`.execute(db());
    // The windows of the present day may be over.
    await eventually(async () => expect((await count()).rows[0]!.count).toBeGreaterThanOrEqual(3 * 399 * 50));
    expect(await refusal(put(resourceReferences, newHours()))).toMatchObject(tooMany);
    await put(resourceReferences.slice(0, 1), newHours());
    await put(resourceReferences, newHours());
    expect((await count()).rows[0]!.count).toBe(0);
  });
});

describe('what operators see', () => {
  it('is how many timeslots of hours there are, and when the next day is made', async () => {
    const key = { ...room, crmId: 'two' };
    await putHours(calendar, key, daily());
    const made = await listAll(key);
    const [booked, changed] = [made[1], made.at(-1)];
    await createAppointment(calendar, { ...key, start: booked!.start, end: booked!.end });
    await calendar.timeslots.updateTimeslot({ ...key, timeslotReference: changed!.reference, defaultCapacity: 3 });
    const validFrom = new Date(Date.parse(textOf(3 * dayMinutes))).toISOString().slice(0, 10);
    await putHours(calendar, key, daily({ validFrom }));
    const { hours } = await calendar.hoursOverviews.listHours({ crmId: 'two', providerReference: 'p1' });
    const overview = hours.find(({ resourceReference }) => resourceReference === key.resourceReference)!;
    const listed = await listAll(key);
    expect(overview).toMatchObject({
      providerReference: 'p1',
      timeZone: 'Europe/Berlin',
      aheadDays: 7,
      hidden: 1,
      changed: 1,
      timeslots: listed.length - 2,
    });
    expect(overview.dueAt!.getTime()).toBeGreaterThan(Date.parse(textOf(0)));
    expect(sumSamples(await calendar.scrape(), 'scheduling_timeslot_making_lag_seconds')).toBe(0);
  });
});
