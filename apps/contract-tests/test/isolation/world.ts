import { waitUntil } from '@scheduling/embedded';
import { expect } from 'vitest';
import {
  createAppointment,
  createParticipation,
  createPractice,
  newAppointment,
  newTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { waitForFeed } from '../feed.ts';
import { createBlock } from '../blocks.ts';
import { newHours, setHours } from '../hours.ts';
import { invite, openBookingPage } from '../invitations.ts';
import { sentMails } from '../mails.ts';
import { newReference, unreachable, type World } from './operation-cases.ts';

/** Creates a provider with one resource of each kind. */
export async function createWorld(owner: TestCrm): Promise<{ practice: Practice; world: World }> {
  const practice = await createPractice(owner);
  const staff = newReference();
  await owner.post('/user', {
    reference: staff,
    email: `${unique('s')}@test.example`,
    username: unique('s'),
    lastName: 'Staff',
  });
  await owner.post(`${practice.at}/staff`, { reference: staff });
  const appointment = await createAppointment(practice, { capacity: 100 });
  const { reference: _reference, start: _start, end: _end, ...series } = newAppointment(practice);
  const { body } = await owner.post<{ seriesId: string }[]>(`${practice.at}/appointments`, {
    ...series,
    series_data: { from: '2031-04-01T09:00', to: '2031-04-01T10:00', raster: 30 },
  });
  const timeslot = newTimeslot(practice, { start: '2031-05-01T09:00', end: '2031-05-01T10:00', defaultCapacity: 100 });
  await owner.post(`${practice.at}/timeslots`, { timeslots: [timeslot] });
  const participation = await createParticipation(practice, appointment);
  const [mail] = await sentMails(practice, participation);
  const hold = newReference();
  const other = newTimeslot(practice, { start: '2031-05-02T09:00', end: '2031-05-02T10:00' });
  await owner.post(`${practice.at}/timeslots`, { timeslots: [other] });
  const place = {
    timeslotReference: other['reference'],
    start: '2031-05-02T09:30',
    productReference: practice.product,
  };
  await owner.post(`${practice.at}/bookings`, { ...place, reference: hold, state: 'RESERVED' });
  const { body: erased } = await owner.post<{ erasure: { id: string } }>('/erasures', {
    email: 'nobody@customers.example',
  });
  await openBookingPage(practice);
  const { id: invitation } = await invite(practice);
  await setHours(practice, newHours());
  const block = newReference();
  await createBlock(practice, { reference: block });
  const calendar = newReference();
  await owner.post(`${practice.at}/calendars`, { reference: calendar, resourceReference: practice.resource });
  await waitForFeed(owner, 1, { providerRef: practice.provider });
  const world = {
    provider: practice.provider,
    user: practice.owner,
    staff,
    account: practice.account,
    timeslot: timeslot['reference'] as string,
    appointment,
    series: body[0]!.seriesId,
    participation,
    mail: mail!.id,
    hold,
    customer: practice.customer,
    invitation,
    block,
    resource: practice.resource,
    product: practice.product,
    erasure: erased.erasure.id,
    calendar,
    webhook: await requireWebhook(owner),
  };
  return { practice, world };
}

/** A CRM can have only 10. It is disabled, and its only attempt is a test: no event of the setup has its type. */
async function requireWebhook(owner: TestCrm): Promise<string> {
  const [existing] = (await owner.get<{ reference: string }[]>('/webhooks')).body;
  if (existing !== undefined) return existing.reference;
  const reference = newReference();
  const at = `/webhooks/${encodeURIComponent(reference)}`;
  expect(await owner.post('/webhooks', { reference, url: unreachable, types: ['mail.failed'] })).toMatchObject({
    status: 201,
  });
  expect(await owner.put(at, { state: 'DISABLED' })).toMatchObject({ status: 200 });
  expect(await owner.post(`${at}/test`, undefined)).toMatchObject({ status: 202 });
  const isTested = async (): Promise<boolean> =>
    (await owner.get<{ eventType: string }[]>(`${at}/attempts`)).body.some(
      ({ eventType }) => eventType === 'webhook.test',
    );
  await waitUntil(isTested, { what: 'the attempt', timeoutMs: 30_000 });
  return reference;
}
