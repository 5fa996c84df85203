import type { HoursWindow } from '@scheduling/contracts/calendar/v1';
import { eventually, startTestNats } from '@scheduling/testing';
import { createRandom, type Random } from '@scheduling/testing/random';
import { sql } from 'kysely';
import { hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  readAppointments,
  startCalendarBeside,
} from './calendar-under-test.ts';
import { act, actions, counts, expectTimeslots, openingOf } from './hours-actions.ts';
import { day, hour, minuteMs, minuteOf, onGrid, type Owner, Provider, readers, textOf, zones } from './hours-model.ts';
import { dayOf } from './hours-reader.ts';
import { hoursRecord, listTimeslots, newHours, newWindow, putHours } from './hours-under-test.ts';
import { createCrm, startNeighbours } from './neighbours.ts';

const seed = Number(process.env['HOURS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
const steps = Number(process.env['HOURS_STEPS'] ?? 40);

const crmId = 'hours';

const stack = new AsyncDisposableStack();
let calendar: CalendarUnderTest;

/** With its own identity service: providers move to other zones. */
beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const neighbours = stack.use(await startNeighbours(nats.url));
  await createCrm(neighbours.identity, { crmId, sandbox: true }, []);
  calendar = stack.use(
    await startCalendarBeside(
      { identity: neighbours.identity.address, customer: neighbours.customer.address },
      nats.url('calendar'),
    ),
  );
}, 180_000);
afterAll(() => stack.disposeAsync());

const setClock = (minute: number) => calendar.clocks.setSandboxClock({ crmId, now: new Date(minute * minuteMs) });

async function createProvider(timeZone: string): Promise<Owner> {
  const providerReference = freshReference('provider');
  await calendar.identity.createProvider({
    crmId,
    reference: providerReference,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Provider',
    timeZone,
  });
  return { crmId, providerReference };
}

describe('a window', () => {
  it.each([
    // The clock goes from 2:00 to 3:00.
    ['Europe/Berlin', '2027-03-28', '02:30', '05:00', 30, '2027-03-28T01:30Z', '2027-03-28T03:00Z'],
    ['Europe/Berlin', '2027-03-28', '01:00', '02:30', 30, '2027-03-28T00:00Z', '2027-03-28T01:30Z'],
    ['Europe/Berlin', '2027-03-28', '01:30', '03:30', 60, '2027-03-28T00:30Z', '2027-03-28T01:30Z'],
    ['Europe/Berlin', '2027-03-27', '22:00', '04:00', 30, '2027-03-27T21:00Z', '2027-03-28T02:00Z'],
    // It goes from 3:00 to 2:00.
    ['Europe/Berlin', '2027-10-31', '02:30', '03:00', 30, '2027-10-31T00:30Z', '2027-10-31T02:00Z'],
    ['Europe/Berlin', '2027-10-31', '01:00', '02:30', 30, '2027-10-30T23:00Z', '2027-10-31T00:30Z'],
    // From 0:00 to 1:00.
    ['America/Santiago', '2027-09-04', '20:00', '24:00', 30, '2027-09-05T00:00Z', '2027-09-05T04:00Z'],
    ['America/Santiago', '2027-09-05', '00:30', '02:00', 30, '2027-09-05T04:30Z', '2027-09-05T05:00Z'],
    // From 24:00 to 23:00.
    ['Asia/Beirut', '2027-10-30', '23:00', '24:00', 30, '2027-10-30T20:00Z', '2027-10-30T22:00Z'],
    // From 2:00 to 2:30.
    ['Australia/Lord_Howe', '2027-10-03', '02:15', '03:00', 15, '2027-10-02T15:45Z', '2027-10-02T16:00Z'],
  ])(
    'in %s on %s from %s to %s in steps of %i minutes is from %s to %s',
    async (zone, date, from, to, raster, ...is) => {
      expect(await openingsOn(zone, date, { from, to, raster })).toEqual([
        { start: minuteOf(is[0]), end: minuteOf(is[1]) },
      ]);
    },
  );

  it.each([
    ['Europe/Berlin', '2027-03-28', '02:15', '02:45', 15],
    ['Europe/Berlin', '2027-03-28', '02:00', '03:00', 15],
    ['Europe/Berlin', '2027-03-28', '02:30', '03:15', 15],
    ['Europe/Berlin', '2027-03-28', '01:30', '03:30', 61],
    ['America/Santiago', '2027-09-05', '00:00', '00:30', 15],
  ])('in %s on %s from %s to %s in steps of %i minutes makes nothing', async (zone, date, from, to, raster) => {
    expect(await openingsOn(zone, date, { from, to, raster })).toEqual([]);
  });

  /** As they are listed, which is as the model reads them. */
  async function openingsOn(zone: string, date: string, window: Partial<HoursWindow>) {
    const midnight = minuteOf(`${date}T00:00Z`);
    await setClock(midnight - 2 * day);
    const key = { ...(await createProvider(zone)), resourceReference: 'room' };
    const windows = [newWindow({ weekdays: [], ...window })];
    const hours = newHours({ exceptions: [{ from: date, to: date, windows }], aheadDays: 5 });
    await putHours(calendar, key, hours);
    const [from, to] = [new Date((midnight - 5 * day) * minuteMs), new Date((midnight + 10 * day) * minuteMs)];
    const listed = (await listTimeslots(calendar, key, from, to)).map(openingOf);
    expect(listed).toEqual(readers.get(zone)!.openingsOn(hours, dayOf(date)));
    return listed.map(({ start, end }) => ({ start, end }));
  }
});

describe('conflicts', () => {
  it('are those of the next 400 days, of which the first 500 are named', async () => {
    const now = minuteOf('2028-01-01T12:00Z');
    await setClock(now);
    const key = { ...(await createProvider('Europe/Berlin')), resourceReference: 'room' };
    const at = (start: number) =>
      createAppointment(calendar, { ...key, start: textOf(start), end: textOf(start + hour) });
    const [near] = [await at(now + 399 * day), await at(now + 401 * day)];
    expect((await putHours(calendar, key, newHours())).conflicts).toEqual({ appointmentReferences: [near], total: 1 });
    // Every 5 minutes for two days.
    const { json } = await calendar.appointments.createSeries({
      ...key,
      spanFrom: '2028-02-01T00:00',
      spanTo: '2028-02-03T00:00',
      raster: 5,
      weekdays: [2, 3],
      windowFrom: '00:00',
      windowTo: '23:55',
      capacity: 1,
      acceptBookings: false,
      productReference: 'product@test',
    });
    const references = readAppointments(json).map(({ reference }) => reference);
    expect((await putHours(calendar, key, newHours())).conflicts).toEqual({
      appointmentReferences: references.slice(0, 500),
      total: references.length + 1,
    });
  });
});

describe('hours that were set before windows had buffers', () => {
  const window = newWindow({ bufferBefore: undefined, bufferAfter: undefined });

  it('have none, make further days, and keep what they have made', async () => {
    const now = minuteOf('2028-03-01T12:00Z');
    await setClock(now);
    const key = { ...(await createProvider('Europe/Berlin')), resourceReference: 'room' };
    const hours = newHours({ weekly: [window], aheadDays: 3 });
    await putHours(calendar, key, hours);
    await forgetBuffers();
    const { json } = await calendar.hours.getHours(key);
    const list = async () =>
      (await listTimeslots(calendar, key, new Date(now * minuteMs), new Date((now + 10 * day) * minuteMs))).map(
        ({ reference, bufferBefore, bufferAfter }) => ({ reference, bufferBefore, bufferAfter }),
      );
    const made = await list();
    await setClock(now + day);
    await eventually(async () => expect(await list()).toHaveLength(made.length + 1));
    const later = await list();
    expect(later.slice(0, made.length)).toEqual(made);
    expect(later.every(({ bufferBefore, bufferAfter }) => bufferBefore === 0 && bufferAfter === 0)).toBe(true);
    await putHours(calendar, key, { ...hours, weekly: [{ ...window, bufferBefore: 0, bufferAfter: 0 }] });
    expect(await list()).toEqual(later);
    expect(JSON.parse(json.toString())).toMatchObject(hoursRecord(key, hours));
  });

  it('have made timeslots that are those of hours without buffers now', async () => {
    const now = minuteOf('2028-03-01T12:00Z');
    await setClock(now);
    const key = { ...(await createProvider('Europe/Berlin')), resourceReference: 'room' };
    await putHours(calendar, key, newHours({ weekly: [newWindow({ bufferBefore: 0 })], aheadDays: 2 }));
    const row = await calendar.database.kysely
      .selectFrom('timeslot')
      .innerJoin('provider', 'provider.id', 'timeslot.providerId')
      .select(['startsAt', 'endsAt', 'contentDigest'])
      .where('provider.reference', '=', key.providerReference)
      .executeTakeFirstOrThrow();
    // As it was written then.
    const digest = hash('sha256', `${row.startsAt.getTime()} ${row.endsAt.getTime()} [30,1,true,null]`);
    expect(row.contentDigest.toString('hex')).toBe(digest);
  });

  /** As the service stored them then. */
  async function forgetBuffers(): Promise<void> {
    const db = calendar.database.kysely;
    await sql`
      UPDATE resource_hours
         SET content = jsonb_set(content, '{weekly}', (
               SELECT coalesce(jsonb_agg(window_ - 'bufferBefore' - 'bufferAfter'), '[]') FROM jsonb_array_elements(content -> 'weekly') AS window_))`.execute(
      db,
    );
  }
});

describe('opening hours', () => {
  it(
    `are what is made of them in 12 zones for more than a year, whatever happens (seed ${seed})`,
    { timeout: 3_600_000 },
    async () => {
      const random = createRandom(seed, 0);
      const inZones = random.shuffled(zones);
      const begin = onGrid(minuteOf('2028-01-01T00:00Z') + random.integer(0, 365 * day)) + 1;
      await setClock(begin);
      const providers = await Promise.all(
        inZones.map(async (zone, index) => {
          const owner = await createProvider(zone);
          return new Provider(owner, await createCustomer(calendar, owner), zone, createRandom(seed, index + 1));
        }),
      );
      const rooms = providers.flatMap((provider) => provider.rooms);
      let now = begin;
      let latest = begin;
      const isEnough = (step: number): boolean =>
        step >= steps && latest > begin + 380 * day && Object.keys(actions).every((action) => counts.has(action));
      for (let step = 0; !isEnough(step) && step < 5 * steps; step += 1) {
        const kind = random.pick(['act', 'act', 'act', 'act', 'clock', 'clock', 'clock', 'zone'] as const);
        const about = `seed ${seed}, step ${step}: ${kind}, now ${textOf(now)}`;
        if (kind === 'act') {
          await Promise.all(
            providers.map((provider) => act(calendar, provider, now, `${about}, in ${provider.timeZone}`)),
          );
          continue;
        }
        if (kind === 'clock') {
          const before = now;
          now = onGrid(randomTime(random, now)) + 1;
          latest = Math.max(latest, now);
          await setClock(now);
          for (const room of rooms) {
            if (now > before) room.makeDays(now);
            else if (room.hours !== undefined) room.setHours(room.hours, now);
          }
        } else {
          await swapZones(random, providers, now);
        }
        await untilMade();
        const compared = rooms.map((room) =>
          expectTimeslots(calendar, room, now, `${about}, in ${room.provider.timeZone}, then ${textOf(now)}`),
        );
        await Promise.all(compared);
      }
      for (const action of Object.keys(actions)) expect(counts.get(action), action).toBeGreaterThan(0);
    },
  );
});

/** Waits until nothing is due: what is made anew later brings back what was deleted meanwhile. */
async function untilMade(): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql`SELECT FROM resource_hours WHERE due_at <= scheduling_now()`.execute(
      calendar.database.kysely,
    );
    expect(rows).toHaveLength(0);
  });
}

/** Of two providers, so that there is one in each zone. */
async function swapZones(random: Random, providers: Provider[], now: number): Promise<void> {
  // What the CRM has changed stands for a window that is elsewhere in another zone.
  const movable = providers.filter(({ rooms }) =>
    rooms.every((room) => room.present(now).every(({ origin }) => origin === undefined)),
  );
  const [one, other] = random.shuffled(movable);
  if (one === undefined || other === undefined) return;
  const [zone, otherZone] = [one.timeZone, other.timeZone];
  await Promise.all([moveTo(one, otherZone, now), moveTo(other, zone, now)]);
}

/** By hours, days, or months, sometimes back. */
function randomTime(random: Random, now: number): number {
  const by = random.pick(['hours', 'hours', 'days', 'days', 'months', 'months', 'months', 'back'] as const);
  if (by === 'hours') return now + random.integer(1, 30 * hour);
  if (by === 'days') return now + random.integer(1, 8) * day + random.integer(0, day);
  if (by === 'months') return now + random.integer(25, 60) * day;
  return now - random.pick([hour, 20 * hour, 3 * day, 15 * day]);
}
/** Waits until the calendar knows it. */
async function moveTo(provider: Provider, timeZone: string, now: number): Promise<void> {
  const { owner, rooms } = provider;
  await calendar.identity.updateProvider({ crmId, reference: owner.providerReference, timeZone });
  await eventually(async () => {
    const copy = await calendar.database.kysely
      .selectFrom('provider')
      .select('timeZone')
      .where('crmId', '=', crmId)
      .where('reference', '=', owner.providerReference)
      .executeTakeFirst();
    expect(copy?.timeZone).toBe(timeZone);
  });
  provider.timeZone = timeZone;
  for (const room of rooms) if (room.hours !== undefined) room.setHours(room.hours, now);
}
