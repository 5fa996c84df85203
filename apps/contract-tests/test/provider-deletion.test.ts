import { eventually } from '@scheduling/testing';
import { runAdmin } from '@scheduling/test-stack/command';
import { path, type Problem } from '@scheduling/test-stack/client';
import { createAppointment, createCrm, createPractice, type Practice, unique } from '@scheduling/test-stack/crm';
import { expect, inject, it } from 'vitest';
import { findRows } from './find-word.ts';

/** The deletion of a provider, its account and its owner (interface 4.5 to 4.7), and the erasure by an operator. */

const accountOf = ({ account }: Practice): string => path`/account/${account}`;
const ownerOf = ({ owner }: Practice): string => path`/user/${owner}`;
const deleteCustomer = ({ crm, at, customer }: Practice) => crm.delete(at + path`/customers/${customer}`);

/** Without its provider, the account and the owner can be deleted. */
async function deleteOwnerOf(practice: Practice): Promise<void> {
  const { crm } = practice;
  expect((await crm.delete<Problem>(ownerOf(practice))).body.code).toBe('user.owner');
  expect((await crm.delete(accountOf(practice))).status).toBe(204);
  expect((await crm.get(accountOf(practice))).status).toBe(404);
  expect((await crm.delete(ownerOf(practice))).status).toBe(204);
}

it('a provider, its account and its owner are deleted one after the other', async () => {
  const practice = await createPractice(await createCrm());
  const { crm, at, provider } = practice;
  const webhook = { url: 'http://127.0.0.1:1/', providerReference: provider };
  await crm.post('/webhooks', { ...webhook, reference: 'of-provider' });
  await crm.post('/webhooks', { url: webhook.url, reference: 'of-all' });
  const refused = await crm.delete<Problem>(at);
  expect(refused).toMatchObject({ status: 409, body: { code: 'provider.in_use' } });
  expect(refused.body.detail).toContain('customers (1)');
  expect((await crm.delete<Problem>(accountOf(practice))).body.detail).toContain(provider);
  await deleteCustomer(practice);
  expect((await crm.delete(at)).status).toBe(204);
  expect((await crm.get(at)).status).toBe(404);
  expect((await crm.get(`${at}/customers`)).status).toBe(404);
  await eventually(async () => {
    const { body } = await crm.get<{ reference: string }[]>('/webhooks');
    expect(body.map(({ reference }) => reference)).toEqual(['of-all']);
  });
  await deleteOwnerOf(practice);
});

it('an operator erases a provider with its past, and nothing of it is left', async () => {
  // A sandbox keeps the texts of mails.
  const practice = await createPractice(await createCrm({ sandbox: true }));
  const { crm, at, provider } = practice;
  const product = unique('product');
  const person = unique('person');
  const past = { start: '2021-03-01T10:00', end: '2021-03-01T11:00', productReference: product };
  for (let count = 0; count < 25; count += 1) await createAppointment(practice, { ...past });
  const future = await createAppointment(practice, {
    participations: [{ reference: unique('p'), name: person, email: `${person}@customers.example`, state: 'BOOKED' }],
  });
  expect((await crm.put(at + path`/appointments/${future}`, { description: 'changed' })).status).toBe(200);
  await eventually(async () => expect((await crm.get('/sandbox/mails')).text).toContain(person));
  const erase = () =>
    runAdmin({ CALENDAR_ADDRESS: inject('stack').admin.calendar }, 'provider', 'erase', crm.crmId, provider);
  for (const [obstacle, remove] of [
    [
      'bookings in the future (1)',
      () => crm.delete(`${at}/appointments/withoutNotification`, { appointmentReference: future }),
    ],
    ['customers (1)', () => deleteCustomer(practice)],
  ] as const) {
    const stopped = await erase();
    expect(stopped.code).toBe(1);
    expect(stopped.output).toContain(obstacle);
    expect(stopped.output).toContain('Erased: 0 appointments');
    await remove();
  }
  const done = await erase();
  expect(done).toMatchObject({ code: 0, output: expect.stringContaining('is deleted') as string });
  expect(done.output).toContain('Erased: 25 appointments');
  await deleteOwnerOf(practice);
  await eventually(async () => {
    for (const word of [product, person, provider, practice.account, practice.customer])
      expect(await findRows(word)).toEqual([]);
  });
});
