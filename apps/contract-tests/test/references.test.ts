import { describe, expect, it } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import { createCrm, unique } from '@scheduling/test-stack/crm';

describe('references of any kind in addresses (interface 1)', () => {
  const strange = [
    'a/b@test',
    'a?b=c@test',
    'a#b@test',
    '100%@test',
    'a%2Fb@test',
    'a b@test',
    'Jürgen@tést',
    '🦊🧦@test',
    `${'ß'.repeat(250)}@test`,
    "';--@test",
    'a+b&c@test',
  ];

  it.each(strange)('%s', async (reference) => {
    const own = await createCrm();
    const name = unique('user');
    expect(
      await own.post('/user', { reference, email: `${name}@test.example`, username: name, lastName: 'X' }),
    ).toMatchObject({ status: 201 });
    expect(await own.get(path`/user/${reference}`)).toMatchObject({ status: 200, body: { user: { reference } } });
    expect(
      await own.post('/account', { ownerReference: reference, accountReference: reference, branch: 'misc' }),
    ).toMatchObject({ status: 201 });
    expect(await own.get(path`/account/${reference}`)).toMatchObject({
      status: 200,
      body: { account: { accountReference: reference } },
    });
    const provider = { reference, ownerReference: reference, accountReference: reference, name: 'P' };
    expect(await own.post('/provider', provider)).toMatchObject({ status: 201 });
    expect(await own.get(path`/provider/${reference}`)).toMatchObject({ status: 200, body: { provider } });
    const at = path`/provider/${reference}`;
    expect(await own.get(`${at}/staff`)).toMatchObject({ status: 200, body: [{ reference }] });
    expect(await own.delete(at + path`/staff/${reference}`)).toMatchObject({ status: 409 });
    expect(
      await own.post(`${at}/customers`, { customerReference: reference, providerReference: reference, userName: 'C' }),
    ).toMatchObject({ status: 201 });
    expect(await own.get(at + path`/customers/${reference}`)).toMatchObject({
      status: 200,
      body: { customer: { customerReference: reference } },
    });
    expect(await own.put(at + path`/customers/${reference}`, { note: 'n' })).toMatchObject({ status: 200 });
    const timeslot = {
      reference,
      resourceReference: reference,
      start: '2031-01-01T09:00',
      end: '2031-01-01T10:00',
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: 'CREATED',
    };
    expect(await own.post(`${at}/timeslots`, { timeslots: [timeslot] })).toMatchObject({ status: 201 });
    expect(await own.put(at + path`/timeslots/${reference}`, { state: 'BOOKABLE' })).toMatchObject({ status: 200 });
    const period = { from: '2031-01-01T00:00', to: '2031-01-02T00:00' };
    const list = await own.get(at + path`/resource/${reference}/timeslots`, { query: period });
    expect(list).toMatchObject({ status: 200, body: [{ reference, resourceReference: reference, state: 'BOOKABLE' }] });
    const blocks = at + path`/resource/${reference}/blocks`;
    const block = { reference, start: '2031-01-01T12:00', end: '2031-01-01T13:00' };
    expect(await own.post(blocks, block)).toMatchObject({ status: 201 });
    expect(await own.get(blocks, { query: period })).toMatchObject({
      status: 200,
      body: [{ reference, resourceReference: reference }],
    });
    expect(await own.delete(blocks + path`/${reference}`)).toMatchObject({ status: 204 });
    const appointment = {
      reference,
      start: '2031-01-01T09:00',
      end: '2031-01-01T10:00',
      capacity: 1,
      resourceReference: reference,
      productReference: reference,
    };
    expect(await own.post(`${at}/appointments`, appointment)).toMatchObject({ status: 201 });
    expect(
      await own.get(`${at}/appointments`, { query: { productRef: reference, resourceRef: reference } }),
    ).toMatchObject({ body: [{ reference }] });
    expect(await own.get(at + path`/appointments/${reference}`)).toMatchObject({
      status: 200,
      body: { appointment: { reference } },
    });
    const booking = { reference, appointmentReference: reference, customerReference: reference, state: 'BOOKED' };
    expect(await own.post(`${at}/participations`, booking)).toMatchObject({ status: 201 });
    expect(await own.post(at + path`/participations/${reference}`, { state: 'CANCELED' })).toMatchObject({
      status: 200,
    });
    expect(
      await own.delete(`${at}/appointments`, undefined, { query: { appointmentReference: reference } }),
    ).toMatchObject({ status: 200 });
    expect(
      await own.delete(`${at}/appointments/withoutNotification`, undefined, {
        query: { appointmentReference: reference },
      }),
    ).toMatchObject({ status: 204 });
    const slots = await own.get<{ start: string }[]>(`${at}/slots`, {
      query: { ...period, resourceRef: reference, productRef: reference },
    });
    expect(slots.body).toMatchObject([
      { timeslotReference: reference, resourceReference: reference },
      { timeslotReference: reference },
    ]);
    const slot = { timeslotReference: reference, start: slots.body[0]!.start, productReference: reference };
    expect(
      await own.post(`${at}/bookings`, { reference, ...slot, customerReference: reference, state: 'BOOKED' }),
    ).toMatchObject({ status: 201 });
    expect(await own.get(at + path`/participations/${reference}`)).toMatchObject({
      status: 200,
      body: { participation: { reference, customerReference: reference } },
    });
    expect(await own.post(at + path`/participations/${reference}`, { state: 'CANCELED' })).toMatchObject({
      status: 200,
    });
    expect(await own.delete(at + path`/timeslots/${reference}`)).toMatchObject({ status: 204 });
  });
});
