import {
  type ListTimeslotsRequest,
  ListTimeslotsResponse,
  type NewTimeslot,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { patiently, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppointmentJson, ParsedTimeslot, ParsingTimeslots } from './parsed-answers.ts';
import {
  type CalendarUnderTest,
  createAppointment,
  freshReference,
  owned,
  readAppointments,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

const period = { from: '2099-06-01T00:00', to: '2099-06-03T00:00' };
const maxRows = 500;
const maxMessageBytes = 4 * 1_048_576;

function newTimeslot(resourceReference: string, overrides: Partial<NewTimeslot> = {}): NewTimeslot {
  return {
    reference: freshReference('timeslot'),
    resourceReference,
    start: '2099-06-01T08:00',
    end: '2099-06-01T20:00',
    raster: 30,
    defaultCapacity: 2,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
    ...overrides,
  };
}

function create(timeslots: NewTimeslot[]) {
  return patiently(() => calendar.timeslots.createTimeslots({ ...owned, timeslots }));
}

/** Creates an appointment from 10:00 to 11:00 and copies it, some at the same time, until there are `count` of them. */
async function createAppointments(
  resourceReference: string,
  count: number,
  texts: { description?: string; notes?: string } = {},
): Promise<void> {
  const reference = await createAppointment(calendar, { resourceReference, ...texts });
  await sql`
    INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, notes,
                             starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
    SELECT crm_id, provider_id, reference || number, resource_reference, product_reference, description, notes,
           starts_at + number / 3 * interval '1 second', ends_at + number / 3 * interval '1 second', capacity, taken, accept_bookings, content_digest
      FROM appointment, generate_series(1, ${count}::integer - 1) AS number
     WHERE crm_id = ${owned.crmId} AND reference = ${reference}`.execute(calendar.database.kysely);
}

function createAttended(resourceReference: string, participations: number): Promise<string> {
  const participant = () => ({
    reference: freshReference('embedded'),
    name: 'Ada',
    email: 'ada@example.com',
    state: ParticipationState.BOOKED,
  });
  return createAppointment(calendar, {
    resourceReference,
    participations: Array.from({ length: participations }, participant),
  });
}

type Request = Omit<ListTimeslotsRequest, 'crmId' | 'providerReference'>;

async function listParts(request: Request): Promise<TimeslotsPart[]> {
  const parts: TimeslotsPart[] = [];
  let continuation: string | undefined;
  do {
    const next: ListTimeslotsRequest = { ...owned, ...request, continuation };
    const part = await patiently(() => calendar.timeslots.listTimeslots(next));
    parts.push(part);
    continuation = part.continuation;
  } while (continuation !== undefined);
  for (const part of parts) expectBounded(part);
  return parts;
}

/** The parts that follow the first part of another answer. */
async function listRest(continuation: string | undefined): Promise<TimeslotsPart[]> {
  const parts: TimeslotsPart[] = [];
  for (let next = continuation; next !== undefined; next = parts.at(-1)!.continuation) {
    const request = { ...owned, resourceReference: '', from: '', to: '', continuation: next };
    parts.push(await patiently(() => calendar.timeslots.listTimeslots(request)));
  }
  for (const part of parts) expectBounded(part);
  return parts;
}

function expectBounded(part: TimeslotsPart): void {
  const appointments = part.timeslots.flatMap(({ appointmentsJson }) => readAppointments(appointmentsJson));
  const rows = appointments.reduce((sum, { participations }) => sum + Math.max(1, participations.length), 0);
  if (appointments.length > 1) expect(rows).toBeLessThanOrEqual(maxRows);
  expect(part.timeslots.length).toBeLessThanOrEqual(maxRows);
  expect(ListTimeslotsResponse.encode(part).finish().length).toBeLessThan(maxMessageBytes / 2);
}

type TimeslotsPart = Awaited<ReturnType<ParsingTimeslots['listTimeslots']>>;

type WholeTimeslot = Omit<ParsedTimeslot, 'appointmentsJson'> & { appointments: AppointmentJson[] };

/** The answer that the parts are. */
function join(parts: Pick<TimeslotsPart, 'timeslots' | 'continued'>[]): WholeTimeslot[] {
  const whole: WholeTimeslot[] = [];
  for (const { timeslots, continued } of parts) {
    const [first, ...others] = timeslots.map(({ appointmentsJson, ...timeslot }) => ({
      ...timeslot,
      appointments: readAppointments(appointmentsJson),
    }));
    if (first === undefined) continue;
    if (continued) whole.at(-1)!.appointments.push(...first.appointments);
    else whole.push(first);
    whole.push(...others);
  }
  return whole;
}

/** The references of the resource's timeslots, each with those of its appointments. */
async function findStored(resourceReference: string): Promise<[string, string[]][]> {
  const { rows } = await sql<{ reference: string; appointments: string[] }>`
    SELECT timeslot.reference, ARRAY(
        SELECT appointment.reference FROM appointment
         WHERE appointment.crm_id = timeslot.crm_id AND appointment.provider_id = timeslot.provider_id
           AND appointment.resource_reference = timeslot.resource_reference
           AND appointment.starts_at >= timeslot.starts_at AND appointment.ends_at <= timeslot.ends_at
         ORDER BY appointment.starts_at, appointment.id) AS appointments
      FROM timeslot WHERE crm_id = ${owned.crmId} AND resource_reference = ${resourceReference}
     ORDER BY starts_at, id`.execute(calendar.database.kysely);
  return rows.map(({ reference, appointments }) => [reference, appointments]);
}

const referencesOf = (timeslots: { reference: string }[]): string[] => timeslots.map(({ reference }) => reference);
const appointmentsOf = (timeslots: WholeTimeslot[]): AppointmentJson[] =>
  timeslots.flatMap(({ appointments }) => appointments);

describe('the timeslots of a resource, in parts,', () => {
  it.each<[what: string, parts: number, fill: (resource: string) => Promise<unknown>]>([
    ['nothing', 1, async () => undefined],
    [
      'timeslots that share appointments',
      4,
      async (resource) => {
        await create(Array.from({ length: 60 }, () => newTimeslot(resource)));
        await createAppointments(resource, 30);
      },
    ],
    [
      'more empty timeslots than rows of a part',
      2,
      async (resource) => {
        for (let round = 0; round < 3; round += 1)
          await create(Array.from({ length: 200 }, () => newTimeslot(resource)));
      },
    ],
    [
      'a timeslot with 2,000 appointments between others',
      5,
      async (resource) => {
        await create([
          newTimeslot(resource, { start: '2099-06-01T07:00', end: '2099-06-01T10:00' }),
          newTimeslot(resource),
          newTimeslot(resource, { start: '2099-06-01T09:00', end: '2099-06-01T11:00' }),
          newTimeslot(resource, { start: '2099-06-02T09:00', end: '2099-06-02T11:00' }),
        ]);
        await createAppointments(resource, 2_000);
      },
    ],
    [
      'exactly as many rows as a part has',
      2,
      async (resource) => {
        await create([newTimeslot(resource), newTimeslot(resource)]);
        await createAppointments(resource, maxRows);
      },
    ],
    [
      'appointments with 400 and with 600 participations',
      6,
      async (resource) => {
        await create([newTimeslot(resource), newTimeslot(resource)]);
        for (const participations of [400, 600, 0, 400]) await createAttended(resource, participations);
      },
    ],
    [
      'long texts',
      8,
      async (resource) => {
        await create([newTimeslot(resource), newTimeslot(resource)]);
        await createAppointments(resource, 400, { description: 'ß'.repeat(1_000), notes: '漢'.repeat(1_000) });
      },
    ],
  ])('are the whole list of %s', async (_, count, fill) => {
    const resourceReference = freshReference('resource');
    await fill(resourceReference);
    const parts = await listParts({ ...period, resourceReference });
    expect(
      join(parts).map(({ reference, appointments }) => [reference, appointments.map((each) => each.reference)]),
    ).toEqual(await findStored(resourceReference));
    expect(parts).toHaveLength(count);
    expect(parts.every(({ nextCursor }) => nextCursor === undefined)).toBe(true);
  });

  it('have pages, whose first part names the next page', async () => {
    const resourceReference = freshReference('resource');
    await create(Array.from({ length: 7 }, () => newTimeslot(resourceReference)));
    await createAppointments(resourceReference, 400);
    const pages: WholeTimeslot[][] = [];
    let cursor: string | undefined;
    do {
      const parts = await listParts({ ...period, resourceReference, limit: 3, cursor });
      cursor = parts[0]!.nextCursor;
      expect(parts.slice(1).every(({ nextCursor }) => nextCursor === undefined)).toBe(true);
      pages.push(join(parts));
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
    expect(pages.flat()).toEqual(join(await listParts({ ...period, resourceReference })));
    const [exact] = await listParts({ ...period, resourceReference, limit: 7 });
    expect(exact!.nextCursor).toBeUndefined();
  });

  it('stay in the page that the first part began, and continue without a timeslot that is deleted', async () => {
    const resourceReference = freshReference('resource');
    const [first, second] = [
      newTimeslot(resourceReference),
      newTimeslot(resourceReference, { start: '2099-06-01T09:00' }),
    ];
    await create([first, second]);
    await createAppointments(resourceReference, 600);
    const list = { ...owned, ...period, resourceReference, limit: 2 };
    const part = await calendar.timeslots.listTimeslots(list);
    expect(referencesOf(part.timeslots)).toEqual([first.reference]);
    await create([newTimeslot(resourceReference, { start: '2099-06-01T09:30' })]);
    await calendar.database.kysely.deleteFrom('timeslot').where('reference', '=', first.reference!).execute();
    const next = await calendar.timeslots.listTimeslots({ ...list, continuation: part.continuation! });
    expect(next.continued).toBe(false);
    const last = await calendar.timeslots.listTimeslots({ ...list, continuation: next.continuation! });
    expect(last.continuation).toBeUndefined();
    const rest = join([next, last]);
    expect(referencesOf(rest)).toEqual([second.reference]);
    expect(appointmentsOf(rest)).toHaveLength(600);
  });

  it('are rejected with a continuation that calendar did not produce', async () => {
    const resourceReference = freshReference('resource');
    await create([newTimeslot(resourceReference), newTimeslot(resourceReference)]);
    await createAppointments(resourceReference, 300);
    const list = { ...owned, ...period, resourceReference };
    const { continuation } = await calendar.timeslots.listTimeslots(list);
    const invalid = [
      '',
      'x',
      'rows=0',
      'rows=501',
      'rows=1e2',
      'rows=5&timeslot=x',
      'ids=x&rows=5',
      'ids=&rows=5',
      `${continuation!}&more=1`,
    ];
    for (const each of invalid) {
      const refused = await refusal(calendar.timeslots.listTimeslots({ ...list, continuation: each }));
      expect(refused, each).toMatchObject({ code: 'timeslot.invalid', errors: [{ pointer: '/continuation' }] });
    }
    const { timeslots } = await calendar.timeslots.listTimeslots({
      ...list,
      crmId: 'two',
      continuation: continuation!,
    });
    expect(timeslots).toEqual([]);
  });
});

describe('the answer of an operation, in parts,', () => {
  it('is the whole answer of creating timeslots, in the order of the request, also when repeated', async () => {
    const resourceReference = freshReference('resource');
    await createAppointments(resourceReference, 20);
    const timeslots = Array.from({ length: 100 }, (_, index) =>
      newTimeslot(resourceReference, { start: `2099-06-01T0${index % 10}:00` }),
    );
    const [key, request] = [randomUUID(), { ...owned, timeslots }];
    const first = await withKey(key, () => calendar.timeslots.createTimeslots(request));
    const parts = [{ ...first, continued: false }, ...(await listRest(first.continuation))];
    expect(parts.length).toBeGreaterThan(3);
    expect(referencesOf(join(parts))).toEqual(timeslots.map(({ reference }) => reference));
    expect(appointmentsOf(join(parts))).toHaveLength(100 * 20);
    const deleted = timeslots[50]!.reference!;
    await calendar.database.kysely.deleteFrom('timeslot').where('reference', '=', deleted).execute();
    const again = await withKey(key, () => calendar.timeslots.createTimeslots(request));
    const rest = await listRest(again.continuation);
    expect(join([{ ...again, continued: false }, ...rest])).toEqual(
      join(parts).filter(({ reference }) => reference !== deleted),
    );
  });

  it('is a single part for 500 timeslots without appointments', async () => {
    const timeslots = Array.from({ length: 500 }, () => newTimeslot(freshReference('resource')));
    const answer = await patiently(() => calendar.timeslots.createTimeslots({ ...owned, timeslots }));
    expect(answer.continuation).toBeUndefined();
    expect(referencesOf(answer.timeslots)).toEqual(timeslots.map(({ reference }) => reference));
  });

  it('is the whole timeslot after an update', async () => {
    const resourceReference = freshReference('resource');
    const [timeslot] = (await create([newTimeslot(resourceReference)])).timeslots;
    await createAppointments(resourceReference, 1_200);
    const update = { ...owned, timeslotReference: timeslot!.reference, defaultCapacity: 9 };
    const first = await calendar.timeslots.updateTimeslot(update);
    const rest = await listRest(first.continuation);
    expect(rest.length).toBeGreaterThan(1);
    const [joined, ...others] = join([{ timeslots: [first.timeslot], continued: false }, ...rest]);
    expect(others).toEqual([]);
    expect(joined!.appointments).toHaveLength(1_200);
    expect(joined).toMatchObject({ reference: timeslot!.reference, defaultCapacity: 9 });
  });
});

describe('a timeslot with 2,500 appointments', () => {
  it('cannot be changed or deleted while the last of them would be orphaned', async () => {
    const resourceReference = freshReference('resource');
    const [timeslot] = (await create([newTimeslot(resourceReference, { raster: 1 })])).timeslots;
    await createAppointments(resourceReference, 2_500);
    const last = await createAppointment(calendar, {
      resourceReference,
      start: '2099-06-01T18:00',
      end: '2099-06-01T19:00',
    });
    const key = { ...owned, timeslotReference: timeslot!.reference };
    const refused = await refusal(calendar.timeslots.updateTimeslot({ ...key, end: '2099-06-01T18:30' }));
    expect(refused).toMatchObject({ code: 'timeslot.has_appointments' });
    expect(refused.message).toContain(`: ${last}.`);
    const many = await refusal(calendar.timeslots.deleteTimeslot(key));
    expect(many).toMatchObject({ code: 'timeslot.has_appointments' });
    expect(many.message).toContain(' and more');
    expect((await calendar.timeslots.updateTimeslot({ ...key, end: '2099-06-01T19:00' })).timeslot).toMatchObject({
      reference: timeslot!.reference,
    });
  });
});
