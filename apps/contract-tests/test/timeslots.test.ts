import { beforeAll, describe, expect, it } from 'vitest';
import { apiInfo, type Timeslot } from './answers.ts';
import { path, type Problem, readPages } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  newTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

describe('timeslots (interface 4.1)', () => {
  const day = { from: '2031-03-03T00:00', to: '2031-03-04T00:00' };
  const timeslots = (): string => `${practice.at}/timeslots`;
  const ofResource = (resource: string): string => practice.at + path`/resource/${resource}/timeslots`;
  it('are created together, returned in full in the order of the request, and safe to repeat', async () => {
    const address = { city: 'Berlin', zip: '10115', country: 'DE', street: 'Ufer', number: '1' };
    const [first, second] = [
      newTimeslot(practice, { start: '2031-03-03T10:00', address }),
      newTimeslot(practice, { address: 'https://video.example/1', state: 'CREATED' }),
    ];
    const created = await crm.post(timeslots(), { timeslots: [first, second] });
    expect(created.status).toBe(201);
    const { country, ...rest } = address;
    const returned = { bufferBefore: 0, bufferAfter: 0, fromHours: false, appointments: [] };
    expect(created.body).toStrictEqual([
      {
        ...first,
        address: { ...rest, countryCode: country },
        start: '2031-03-03T09:00:00Z',
        end: '2031-03-03T11:00:00Z',
        ...returned,
      },
      { ...second, start: '2031-03-03T07:00:00Z', end: '2031-03-03T11:00:00Z', ...returned },
    ]);
    const again = await crm.post(timeslots(), { timeslots: [first, second] });
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    expect(await crm.post(timeslots(), { timeslots: [{ ...first, raster: 15 }] })).toMatchObject({
      status: 409,
      body: { code: 'timeslot.reference_taken' },
    });
    expect(
      await crm.post(timeslots(), {
        timeslots: [first, newTimeslot(practice, { resourceReference: 'elsewhere@test' })],
      }),
    ).toMatchObject({ status: 201 });
  });

  it('get a reference and a start if they have none', async () => {
    const before = Math.floor(Date.now() / 60_000) * 60_000;
    const {
      reference: _reference,
      start: _start,
      ...rest
    } = newTimeslot(practice, { resourceReference: 'now@test', end: '2098-01-01T00:00' });
    const created = await crm.post<Timeslot[]>(timeslots(), { timeslots: [rest, rest] });
    expect(created.status).toBe(201);
    expect(new Set(created.body.map(({ reference }) => reference)).size).toBe(2);
    for (const { start } of created.body) {
      expect(start).toMatch(/:00Z$/);
      expect(Date.parse(start)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(start)).toBeLessThanOrEqual(Date.now());
    }
  });

  it('are created all or none, and each invalid one is reported', async () => {
    const resourceReference = 'all-or-none@test';
    const good = newTimeslot(practice, { resourceReference });
    const refused = await crm.post<Problem>(timeslots(), {
      timeslots: [
        good,
        newTimeslot(practice, { end: '2031-03-03T08:00' }),
        good,
        newTimeslot(practice, { raster: 300 }),
      ],
    });
    expect(refused).toMatchObject({ status: 400, body: { code: 'timeslot.invalid' } });
    expect(refused.body.errors?.map(({ pointer }) => pointer)).toEqual([
      '/timeslots/1/end',
      '/timeslots/2/reference',
      '/timeslots/3/raster',
    ]);
    expect((await crm.get(ofResource(resourceReference), { query: day })).body).toEqual([]);
  });

  it('are listed for a resource and a period, by start, with the appointments in their window', async () => {
    const resource = `${unique('resource')}@test`;
    const [inside, other, before] = await Promise.all([
      createAppointment(practice, { resourceReference: resource }),
      createAppointment(practice),
      createAppointment(practice, { resourceReference: resource, start: '2031-03-03T07:30', end: '2031-03-03T08:30' }),
    ]);
    const late = newTimeslot(practice, {
      resourceReference: resource,
      start: '2031-03-03T14:00',
      end: '2031-03-03T15:00',
    });
    const early = newTimeslot(practice, { resourceReference: resource });
    const next = newTimeslot(practice, {
      resourceReference: resource,
      start: '2031-03-04T00:00',
      end: '2031-03-04T01:00',
    });
    await crm.post(timeslots(), { timeslots: [late, early, next] });
    const { body } = await crm.get<Timeslot[]>(ofResource(resource), { query: day });
    expect(body.map(({ reference }) => reference)).toEqual([early['reference'], late['reference']]);
    expect(body[0]!.appointments.map(({ reference }) => reference)).toEqual([inside]);
    expect(body[1]!.appointments).toEqual([]);
    expect(JSON.stringify(body)).not.toContain(other);
    expect(JSON.stringify(body)).not.toContain(before);
    expect(
      (
        await crm.get<Timeslot[]>(ofResource(resource), {
          query: { from: '2031-03-03T10:59:00Z', to: '2031-03-03T12:00:00+01:00' },
        })
      ).body,
    ).toHaveLength(1);
    expect(
      (await crm.get<Timeslot[]>(ofResource(resource), { query: { from: '2031-03-03T12:00', to: '2031-03-03T14:00' } }))
        .body,
    ).toEqual([]);
  });

  it.each([
    ['1900-01-01T00:00', '1899-12-31T23:00:00Z'],
    ['9998-12-31T23:59-14:00', '9999-01-01T13:59:00Z'],
  ])('may start at %s, the end of the supported years, in the provider’s time zone', async (start, presented) => {
    const end = start.replace('T00:00', 'T12:00').replace('-14:00', '-14:59');
    const answer = await crm.post<Timeslot[]>(timeslots(), {
      timeslots: [newTimeslot(practice, { start, end, raster: 1 })],
    });
    expect(answer).toMatchObject({ status: 201, body: [{ start: presented }] });
  });

  it('require both ends of the period', async () => {
    const refused = await crm.get<Problem>(ofResource('r'));
    expect(refused).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
    expect(refused.body.errors?.map(({ parameter }) => parameter).sort()).toEqual(['from', 'to']);
    expect(await crm.get(ofResource('r'), { query: { from: day.to, to: day.from } })).toMatchObject({ status: 400 });
  });

  it('come in pages', async () => {
    const resource = `${unique('paged')}@test`;
    const slots = Array.from({ length: 7 }, (_, hour) =>
      newTimeslot(practice, {
        resourceReference: resource,
        start: `2031-03-03T0${hour}:00`,
        end: `2031-03-03T0${hour}:30`,
      }),
    );
    await crm.post(timeslots(), { timeslots: slots });
    const pages = await readPages<Timeslot>(crm, ofResource(resource), { ...day, limit: '3' });
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
    expect(pages.flat().map(({ reference }) => reference)).toEqual(slots.map(({ reference }) => reference));
  });

  it('change only the given fields, and must still contain their appointments', async () => {
    const resource = `${unique('resource')}@test`;
    const slot = newTimeslot(practice, { resourceReference: resource });
    await crm.post(timeslots(), { timeslots: [slot] });
    const reference = slot['reference'] as string;
    const at = timeslots() + path`/${reference}`;
    const changed = await crm.put(at, { defaultCapacity: 7, state: 'CREATED', defaultAcceptBookings: false });
    expect(changed.status).toBe(200);
    expect(changed.body).toStrictEqual({
      'api-info': apiInfo,
      timeslot: {
        ...slot,
        address: null,
        start: '2031-03-03T07:00:00Z',
        end: '2031-03-03T11:00:00Z',
        bufferBefore: 0,
        bufferAfter: 0,
        fromHours: false,
        appointments: [],
        defaultCapacity: 7,
        state: 'CREATED',
        defaultAcceptBookings: false,
      },
    });
    expect(await crm.put(at, { state: 'BOOKABLE' })).toMatchObject({
      status: 200,
      body: { timeslot: { state: 'BOOKABLE', defaultCapacity: 7 } },
    });
    expect(await crm.put(at, { state: 'CREATED' })).toMatchObject({ status: 200 });
    expect(await crm.put(at, {})).toMatchObject({ status: 200 });
    expect(await crm.put(at, { start: '2031-03-03T13:00' })).toMatchObject({
      status: 400,
      body: { code: 'timeslot.invalid' },
    });

    const appointment = await createAppointment(practice, { resourceReference: resource });
    const orphaning = { status: 409, body: { code: 'timeslot.has_appointments' } };
    expect(await crm.put(at, { start: '2031-03-03T09:30' })).toMatchObject(orphaning);
    expect(await crm.put(at, { raster: 45 })).toMatchObject(orphaning);
    expect(await crm.delete(at)).toMatchObject(orphaning);
    await crm.delete(`${practice.at}/appointments`, { appointmentReference: appointment });
    expect(await crm.put(at, { start: '2031-03-03T09:30' })).toMatchObject({ status: 200 });
    expect(await crm.delete(at)).toMatchObject({ status: 204 });
    for (const answer of [await crm.delete(at), await crm.put(at, {})])
      expect(answer).toMatchObject({ status: 404, body: { code: 'timeslot.not_found' } });
  });

  it('are 404 under a provider that does not exist', async () => {
    const missing = { status: 404, body: { code: 'provider.not_found' } };
    expect(await crm.post('/provider/nothing%40test/timeslots', { timeslots: [newTimeslot(practice)] })).toMatchObject(
      missing,
    );
    expect(await crm.get('/provider/nothing%40test/resource/r/timeslots', { query: day })).toMatchObject(missing);
  });
});
