import { KeyScope } from '@scheduling/contracts/identity/v1';
import { createAdminClient } from '@scheduling/stack/admin-client';
import { eventually } from '@scheduling/testing';
import { join } from 'node:path';
import { beforeAll, expect, inject, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { codesIn } from '@scheduling/test-stack/api-document';
import { type Answer, apiDocument, createClient, path, type Problem } from '@scheduling/test-stack/client';
import { createCrm, newAppointment, newTimeslot, type TestCrm, unique } from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { createBlocks } from './blocks.ts';
import { newHours, newWeeklyWindow } from './hours.ts';
import { inDays } from './invitations.ts';
import { bookUntilMailWaits, mailsAt, sentMails } from './mails.ts';
import { withLockedRow } from './lost-answers.ts';

/** Codes that no request can provoke, at least not soon enough, or without disturbing other tests. */
const composed = [
  'calendar.invalid',
  'internal',
  'rate.concurrent',
  'rate.strangers',
  'request.timeout',
  'service.unavailable',
];

const recordedFile = join(repositoryRoot, 'apps/gateway/src/problem-examples.json');

const at = '/provider/workshop%40acme';
const resource = { resource: 'room-1@acme', product: 'haircut@acme' } as Parameters<typeof newAppointment>[0];
/** Unique across the whole service. */
const [email, username] = [`${unique('ada')}@acme.example`, unique('ada')];
const user = { reference: 'ada@acme', email, username, lastName: 'Lovelace' };
const account = { ownerReference: 'ada@acme', accountReference: 'main@acme', branch: 'misc' };
const provider = {
  reference: 'workshop@acme',
  ownerReference: 'ada@acme',
  accountReference: 'main@acme',
  name: 'Workshop',
  timeZone: 'Europe/Berlin',
};
const customer = { customerReference: 'c-1@acme', providerReference: 'workshop@acme', userName: 'Grace Hopper' };
const timeslot = newTimeslot(resource, { reference: 't-1@acme', resourceReference: 'room-2@acme' });
const slot = { timeslotReference: 't-1@acme', start: '2031-03-03T08:00', productReference: 'haircut@acme' };
const participation = {
  reference: 'b-1@acme',
  appointmentReference: 'a-1@acme',
  customerReference: 'c-1@acme',
  state: 'BOOKED',
};
/** Gets mails. */
const recipient = {
  customerReference: 'c-3@acme',
  providerReference: 'workshop@acme',
  userName: 'Grace Hopper',
  email: `grace-${email}`,
};
const webhook = { reference: 'w-1@acme', url: 'https://crm.example/hooks/scheduling' };
const calendar = { reference: 'cal-1@acme', resourceReference: 'room-1@acme' };
const offer = {
  productReference: 'haircut@acme',
  name: 'Haircut',
  duration: 30,
  resources: [{ resourceReference: 'room-1@acme', name: 'Room 1' }],
};
const invitation = { productReference: 'haircut@acme', bookings: 1, expiresAt: inDays(30) };
const block = { reference: 'block-1@acme', start: '2031-09-01T09:00', end: '2031-09-01T17:00', note: 'Training' };
const reused = { headers: { 'idempotency-key': 'order-17' } };
const strict = { headers: { prefer: 'handling=strict' } };
const period = { from: '2031-03-03T09:00', to: '2031-03-03T09:00' };

let crm: TestCrm;
beforeAll(setUp);

/** What the requests below are rejected because of. */
async function setUp(): Promise<void> {
  crm = await createCrm({ sandbox: true });
  const appointment = (reference: string, hour: string) =>
    newAppointment(resource, { reference, start: `2031-03-03T${hour}:00`, end: `2031-03-03T${hour}:30` });
  const creations: [string, unknown][] = [
    ['/user', user],
    ['/user', { ...user, reference: 'grace@acme', username: `${username}-2` }],
    ['/user', { ...user, reference: 'mary@acme', username: `${username}-3`, email: `mary-${email}` }],
    ['/user', { ...user, reference: 'joan@acme', username: `${username}-4`, email: `joan-${email}` }],
    ['/account', account],
    ['/provider', provider],
    [`${at}/customers`, customer],
    [`${at}/customers`, { ...customer, customerReference: 'c-2@acme' }],
    [`${at}/customers`, recipient],
    [`${at}/timeslots`, { timeslots: [timeslot] }],
    [`${at}/bookings`, { ...slot, reference: 'b-2@acme', customerReference: 'c-1@acme', state: 'BOOKED' }],
    [`${at}/bookings`, { ...slot, start: '2031-03-03T08:30', reference: 'b-3@acme', state: 'RESERVED' }],
    ...['a-1@acme', 'a-2@acme', 'a-3@acme', 'a-4@acme'].map((reference, index): [string, unknown] => [
      `${at}/appointments`,
      appointment(reference, String(10 + index)),
    ]),
    [`${at}/participations`, participation],
    [`${at}/appointments`, newAppointment(resource, { reference: 'a-5@acme', capacity: 10 })],
    ...['m-1@acme', 'm-2@acme'].map((reference): [string, unknown] => [
      `${at}/participations`,
      { ...participation, reference, appointmentReference: 'a-5@acme', customerReference: 'c-3@acme' },
    ]),
    [`${at}/resource/room-1%40acme/blocks`, block],
    ['/webhooks', webhook],
    ...Array.from({ length: 9 }, (_, index): [string, unknown] => [
      '/webhooks',
      { ...webhook, reference: `w-${index + 2}@acme` },
    ]),
    ...Array.from({ length: 100 }, (_, index): [string, unknown] => [
      `${at}/calendars`,
      { ...calendar, reference: `cal-${index + 1}@acme` },
    ]),
  ];
  for (const [address, body] of creations) expect(await crm.post(address, body)).toMatchObject({ status: 201 });
  await createBlocks({ crm, at, resource: 'room-3@acme' }, 1_000);
  expect((await crm.put(`${at}/booking-rules`, { page: true, offers: [offer] })).status).toBe(200);
  for (let count = 0; count < 100; count += 1)
    expect((await crm.post(`${at}/customers/c-2%40acme/invitations`, invitation)).status).toBe(201);
  expect((await crm.delete(`${at}/appointments`, { appointmentReference: 'a-2@acme' })).status).toBe(200);
  await verify('mary@acme', `mary-${email}`);
}

async function verify(reference: string, address: string): Promise<void> {
  expect((await crm.send('POST', path`/user/${reference}/verification`)).status).toBe(204);
  const [mail] = await waitForMails(address, 1);
  const [, token = ''] = /\/verify-email\?token=([\w-]+)/.exec(mail!.text)!;
  const confirmed = await fetch(`${inject('stack').gateway}/verify-email`, {
    method: 'POST',
    body: new URLSearchParams({ token }),
  });
  expect(confirmed.status).toBe(200);
}

async function readOnlyKey(): Promise<string> {
  using admin = createAdminClient(inject('stack').admin.identity);
  return (await admin.createKey({ crmId: crm.crmId, scope: KeyScope.READ })).key;
}

const withKey = (key: string | undefined, crmId = crm.crmId) => createClient(inject('stack'), crmId, key);
const post = (address: string, body: unknown) => () => crm.post(address, body);
const put = (address: string, body: unknown) => () => crm.put(address, body);
const get =
  (address: string, parameters = {}) =>
  () =>
    crm.get(address, { query: parameters });
const remove = (address: string, body?: unknown) => () => crm.delete(address, body);
const series = (data: object) =>
  post(`${at}/appointments`, {
    resourceReference: 'room-1@acme',
    productReference: 'course@acme',
    series_data: { raster: 20, ...data },
  });

/** A request for each code, and for `<code>-parameter`, if requests without a body get it with errors in parameters. */
const requests: Record<string, () => Promise<Answer>> = {
  'key.missing': () => withKey(undefined).get('/webhooks'),
  'key.invalid': () => withKey('sk_unknown').get('/webhooks'),
  'crm.forbidden': () => withKey(crm.key, 'other').get('/webhooks'),
  'key.scope_insufficient': async () => withKey(await readOnlyKey()).post('/user', user),
  'request.invalid': post('/user', { reference: 'ada', email: 'ada@acme.example' }),
  'request.invalid-parameter': get(`${at}/slots`, { from: 'tomorrow', limit: 0 }),
  'request.malformed': () => crm.post('/user', undefined, { rawBody: '{' }),
  'request.unknown_field': () => crm.post('/user', { ...user, surname: 'Lovelace' }, strict),
  'request.unknown_field-parameter': () => crm.get('/webhooks', { ...strict, query: { limt: 5 } }),
  'request.too_large': () => crm.post('/user', { ...user, lastName: 'x'.repeat(1_100_000) }),
  'request.unsupported_media_type': () => crm.post('/user', user, { headers: { 'content-type': 'text/plain' } }),
  'idempotency_key.invalid': () => crm.post('/user', user, { headers: { 'idempotency-key': 'x'.repeat(256) } }),
  'idempotency_key.in_flight': whileInFlight,
  'idempotency_key.reused': async () => {
    await crm.post(`${at}/customers`, customer, reused);
    return crm.post(`${at}/customers`, { ...customer, userName: 'Other' }, reused);
  },
  'rate.limited': async () => {
    const limited = await createCrm({ requestsPerMinute: 2 });
    for (let times = 0; times < 2; times += 1) await limited.get('/webhooks');
    return limited.get('/webhooks');
  },
  'user.invalid': get('/users', { limit: 5, cursor: 'none' }),
  'user.not_found': get('/user/nobody%40acme'),
  'user.email_taken': put('/user/joan%40acme', { email }),
  'user.username_taken': post('/user', { ...user, reference: 'other@acme', email: `other-${email}` }),
  'user.owner': remove('/user/ada%40acme'),
  'user.email_verified': post('/user/mary%40acme/verification', undefined),
  'user.email_derived': post('/user/grace%40acme/verification', undefined),
  'verification.limited': async () => {
    await crm.post('/user/joan%40acme/verification', undefined);
    return crm.post('/user/joan%40acme/verification', undefined);
  },
  'account.invalid': get('/accounts', { limit: 5, cursor: 'none' }),
  'account.not_found': get('/account/other%40acme'),
  'account.in_use': remove('/account/main%40acme'),
  'account.reference_unparsable': post('/account', { ...account, accountReference: 'main' }),
  'account.owner_not_found': post('/account', {
    ...account,
    accountReference: 'other@acme',
    ownerReference: 'nobody@acme',
  }),
  'branch.unknown': post('/account', { ...account, accountReference: 'other@acme', branch: 'circus' }),
  'provider.invalid': get('/providers', { limit: 5, cursor: 'none' }),
  'provider.not_found': get('/provider/other%40acme'),
  'provider.in_use': remove(at),
  'provider.owner_not_found': post('/provider', {
    ...provider,
    reference: 'other@acme',
    ownerReference: 'nobody@acme',
  }),
  'provider.account_not_found': post('/provider', {
    ...provider,
    reference: 'other@acme',
    accountReference: 'other@acme',
  }),
  'provider.time_zone_unknown': put(at, { timeZone: 'Mars/Olympus' }),
  'staff.not_found': remove(`${at}/staff/nobody%40acme`),
  'staff.owner': remove(`${at}/staff/ada%40acme`),
  'timeslot.invalid': post(`${at}/timeslots`, {
    timeslots: [{ ...timeslot, reference: 't-2@acme', end: '2031-03-03T07:00' }],
  }),
  'timeslot.invalid-parameter': get(`${at}/resource/room-1%40acme/timeslots`, period),
  'timeslot.not_found': remove(`${at}/timeslots/other%40acme`),
  'timeslot.reference_taken': post(`${at}/timeslots`, { timeslots: [{ ...timeslot, raster: 15 }] }),
  'timeslot.has_appointments': remove(`${at}/timeslots/t-1%40acme`),
  'slot.invalid': get(`${at}/slots`, period),
  'slot.unavailable': post(`${at}/bookings`, {
    ...slot,
    reference: 'b-4@acme',
    customerReference: 'c-2@acme',
    state: 'BOOKED',
  }),
  'booking.invalid': post(`${at}/bookings`, { ...slot, reference: 'b-4@acme', state: 'BOOKED' }),
  'booking.customer_missing': post(`${at}/participations/b-3%40acme`, { state: 'BOOKED' }),
  'appointment.invalid': post(`${at}/appointments`, newAppointment(resource, { end: '2031-03-03T08:00' })),
  'appointment.invalid-parameter': get(`${at}/appointments`, period),
  'appointment.not_found': get(`${at}/appointments/other%40acme`),
  'appointment.reference_taken': post(
    `${at}/appointments`,
    newAppointment(resource, { reference: 'a-1@acme', capacity: 5 }),
  ),
  'appointment.cancelled': post(`${at}/participations`, {
    ...participation,
    reference: 'b-4@acme',
    appointmentReference: 'a-2@acme',
  }),
  'series.empty': series({ from: '2031-03-03T09:00', to: '2031-03-03T09:10' }),
  'series.too_long': series({ from: '2031-03-03T00:00', to: '2031-03-03T23:59', raster: 1 }),
  'series.not_found': remove(`${at}/appointments/withoutNotification`, {
    seriesId: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  }),
  'participation.invalid': get(`${at}/participations`, period),
  'participation.not_found': get(`${at}/participations/other%40acme`),
  'participation.reference_taken': () =>
    crm.post(`${at}/participations`, participation, { query: { onDuplicateRaise: true } }),
  'participation.capacity_exhausted': post(`${at}/participations`, {
    ...participation,
    reference: 'b-4@acme',
    customerReference: 'c-2@acme',
  }),
  'participation.state_unsupported': post(`${at}/participations/b-1%40acme`, { state: 'REQUESTED' }),
  'participation.move_not_allowed': async () => {
    await crm.post(`${at}/participations`, {
      ...participation,
      reference: 'b-5@acme',
      appointmentReference: 'a-3@acme',
    });
    await crm.post(`${at}/participations/b-5%40acme`, { state: 'CANCELED' });
    return crm.post(`${at}/participations/b-5%40acme`, { state: 'BOOKED' });
  },
  'participation.not_booked': post(`${at}/participations/b-5%40acme`, { noShow: true }),
  'participation.not_started': post(`${at}/participations/b-1%40acme`, { noShow: true }),
  'participation.anonymous': async () => {
    const past = { reference: 'a-past@acme', start: '2020-01-06T09:00', end: '2020-01-06T10:00' };
    await crm.post(`${at}/appointments`, newAppointment(resource, past));
    await crm.post(`${at}/customers`, { ...customer, customerReference: 'c-past@acme' });
    const booking = { ...participation, reference: 'b-past@acme', appointmentReference: 'a-past@acme' };
    await crm.post(
      `${at}/participations`,
      { ...booking, customerReference: 'c-past@acme' },
      { query: { ignoreCapacity: true } },
    );
    await crm.delete(`${at}/customers/c-past%40acme`);
    const { body } = await crm.get<{ appointment: { participations: { reference: string }[] } }>(
      `${at}/appointments/a-past%40acme`,
    );
    const anonymous = body.appointment.participations[0]!.reference;
    return crm.post(`${at}/participations/${anonymous}`, { noShow: true });
  },
  'link.not_found': async () => {
    await crm.post(`${at}/participations`, { ...participation, reference: 'b-7@acme', state: 'DELETED' });
    return crm.get(`${at}/participations/b-7%40acme/link`);
  },
  'mail.not_found': () => resend('m-1@acme', '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e'),
  'mail.outdated': async () => {
    const [mail] = await sentMails({ crm, at }, 'm-1@acme');
    await crm.post(`${at}/participations/m-1%40acme`, { state: 'CANCELED' });
    return resend('m-1@acme', mail!.id);
  },
  'mail.address_missing': async () => {
    const [mail] = await sentMails({ crm, at }, 'm-2@acme');
    await setAddress(null);
    const answer = await resend('m-2@acme', mail!.id);
    await setAddress(recipient.email);
    return answer;
  },
  'mail.pending': async () => {
    const { participation: waiting, mail } = await bookUntilMailWaits({ ...resource, crm, at, customer: 'c-3@acme' });
    return resend(waiting, mail.id);
  },
  'customer.invalid': get(`${at}/customers`, { limit: 5, cursor: 'none' }),
  'customer.not_found': put(`${at}/customers/other%40acme`, { userName: 'Other' }),
  'customer.reference_taken': put(`${at}/customers/c-2%40acme`, { customerReference: 'c-1@acme' }),
  'customer.has_future_appointments': remove(`${at}/customers/c-1%40acme`),
  'erasure.not_found': get('/erasures/0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e'),
  'events.invalid': put('/webhooks/w-1%40acme', { after: 'none' }),
  'events.invalid-parameter': get('/events', { after: 'none' }),
  'events.expired': get('/events', { after: '018f0000-0000-7000-8000-000000000000' }),
  'sandbox.invalid': put('/sandbox/clock', { now: '2099-01-01T00:00Z' }),
  'sandbox.invalid-parameter': get('/sandbox/mails', { cursor: 'none' }),
  'sandbox.not_found': async () => (await createCrm()).get('/sandbox/clock'),
  'hours.invalid': put(`${at}/resource/room-1%40acme/hours`, newHours({ weekly: [newWeeklyWindow({ raster: 240 })] })),
  'hours.not_found': get(`${at}/resource/room-1%40acme/hours`),
  'block.invalid': post(`${at}/resource/room-1%40acme/blocks`, { ...block, end: '2031-09-01T09:00' }),
  'block.invalid-parameter': get(`${at}/resource/room-1%40acme/blocks`, period),
  'block.not_found': remove(`${at}/resource/room-1%40acme/blocks/other%40acme`),
  'block.reference_taken': post(`${at}/resource/room-1%40acme/blocks`, { ...block, note: 'Holidays' }),
  'block.limit_reached': post(`${at}/resource/room-3%40acme/blocks`, { ...block, reference: 'block-2@acme' }),
  'calendar.not_found': remove(`${at}/calendars/other%40acme`),
  'booking_rules.invalid': put(`${at}/booking-rules`, { embedOn: ['http://www.acme.example'] }),
  'calendar.reference_taken': post(`${at}/calendars`, { ...calendar, details: 'NAMES' }),
  'calendar.limit_reached': post(`${at}/calendars`, { ...calendar, reference: 'cal-101@acme' }),
  'invitation.invalid': post(`${at}/customers/c-1%40acme/invitations`, {
    ...invitation,
    productReference: 'other@acme',
  }),
  'invitation.not_found': remove(`${at}/customers/c-1%40acme/invitations/0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e`),
  'invitation.no_page': async () => {
    await crm.put(`${at}/booking-rules`, { page: false });
    const answer = await crm.post(`${at}/customers/c-1%40acme/invitations`, invitation);
    await crm.put(`${at}/booking-rules`, { page: true });
    return answer;
  },
  'invitation.limit_reached': post(`${at}/customers/c-2%40acme/invitations`, invitation),
  'webhook.invalid': post('/webhooks', { ...webhook, reference: 'w-11@acme', types: ['customer'] }),
  'webhook.invalid-parameter': get('/webhooks/w-1%40acme/attempts', { cursor: 'none' }),
  'webhook.not_found': get('/webhooks/other%40acme'),
  'webhook.tests_limited': testUntilRefused,
  'webhook.reference_taken': post('/webhooks', { ...webhook, url: 'https://crm.example/other' }),
  'webhook.limit_reached': post('/webhooks', { ...webhook, reference: 'w-11@acme' }),
};

/**
 * Changes the address of the recipient of mails, and waits until calendar, which is asked for it when a mail is
 * written, knows it.
 */
async function setAddress(address: string | null): Promise<void> {
  await crm.put(`${at}/customers/c-3%40acme`, { email: address });
  await eventually(async () => {
    const { body } = await crm.get<{ participation: { email: string | null } }>(`${at}/participations/m-2%40acme`);
    expect(body.participation.email).toBe(address);
  });
}

const resend = (reference: string, mailId: string): Promise<Answer> =>
  crm.post(`${mailsAt({ at }, reference)}/${mailId}/resend`, undefined);

async function testUntilRefused(): Promise<Answer> {
  for (;;) {
    const answer = await crm.post('/webhooks/w-1%40acme/test', undefined);
    if (answer.status !== 202) return answer;
  }
}

/** One of two requests waits for a lock, and the other one is rejected. */
async function whileInFlight(): Promise<Answer> {
  const book = () =>
    crm.post(
      `${at}/participations`,
      { ...participation, reference: 'b-6@acme', appointmentReference: 'a-4@acme', customerReference: 'c-2@acme' },
      { headers: { 'idempotency-key': 'booking-6' } },
    );
  let rejected: Answer;
  await withLockedRow('appointment', 'a-4@acme', async () => {
    rejected = await eventually(async () => {
      const answers = (await Promise.all([book(), book()])).toSorted((a, b) => a.status - b.status);
      expect(answers.map(({ status }) => status)).toEqual([409, 503]);
      return answers[0]!;
    });
  });
  return rejected!;
}

it('has recorded the examples of problems in the API document (npx vitest run apps/contract-tests/test/problem-examples --update)', async () => {
  const recorded: Record<string, Problem> = {};
  for (const [name, request] of Object.entries(requests)) {
    const { body } = (await request()) as Answer<Problem>;
    expect(body, name).toMatchObject({ code: name.replace(/-parameter$/, '') });
    if (name.endsWith('-parameter'))
      expect(body.errors, name).toContainEqual(expect.objectContaining({ parameter: expect.any(String) }));
    recorded[name] = { ...body, detail: withoutChance(body.detail), instance: '5c0f1f0e-3a52-4d0c-9f2b-0a3f6f5b7d11' };
  }
  await expect(`${JSON.stringify(recorded, null, 2)}\n`).toMatchFileSnapshot(recordedFile);
});

/** The references that the service has generated are numbered. */
function withoutChance(detail: string): string {
  let count = 0;
  return detail.replaceAll(
    /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g,
    () => `0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1${(count += 1)}`,
  );
}

it('knows for every code in the API document how to provoke it, but for a few', async () => {
  const { text } = await apiDocument();
  const codes = codesIn(text);
  expect([...codes].filter((code) => !(code in requests)).toSorted()).toEqual(composed);
});
