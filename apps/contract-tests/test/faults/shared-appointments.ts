import { type IncomingMessage, request } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import { createAppointment, newTimeslot, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { expectLittleGrowth, heldMemory, waitUntilListsRest } from './held-memory.ts';
import { practiceForFaults } from './stack-with-faults.ts';

const timeslotCount = 20;
const appointmentCount = 200;
const readerCount = 5;
const resourceReference = 'shared@test';

let stack: TestStack;
let crm: TestCrm;
let practice: Practice;
let timeslots: ReturnType<typeof newTimeslot>[];

/** Every timeslot contains every appointment. */
beforeAll(async () => {
  ({ stack, crm, practice } = await practiceForFaults());
  const slot = { resourceReference, start: '2031-01-01T00:00', end: '2031-01-02T00:00' };
  timeslots = Array.from({ length: timeslotCount }, () => newTimeslot(practice, slot));
  await crm.post(`${practice.at}/timeslots`, { timeslots });
  const texts = { description: 'd'.repeat(1_000), notes: 'n'.repeat(1_000) };
  const reference = await createAppointment(practice, {
    resourceReference,
    start: '2031-01-01T10:00',
    end: '2031-01-01T10:30',
    ...texts,
  });
  await query(
    'calendar',
    `INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, notes, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
     SELECT crm_id, provider_id, reference || number, resource_reference, product_reference, description, notes, starts_at, ends_at, capacity, taken, accept_bookings, content_digest
       FROM appointment, generate_series(1, $3::int - 1) AS number
      WHERE crm_id = $1 AND reference = $2`,
    [crm.crmId, reference, appointmentCount],
    stack.info,
  );
}, 60_000);

describe(
  `${timeslotCount} timeslots that share ${appointmentCount} appointments, read by ${readerCount} at once,`,
  { timeout: 120_000 },
  () => {
    it.each([
      [
        'listed',
        () =>
          open('GET', `${path`/resource/${resourceReference}/timeslots`}?from=2031-01-01T00:00&to=2031-01-02T00:00`),
      ],
      ['created again', () => open('POST', '/timeslots', { timeslots })],
    ])('are not held in memory by the gateway or by calendar when they are %s', async (_, openOne) => {
      await waitUntilListsRest(stack);
      const before = await heldMemory(stack);
      const readers = await Promise.all(Array.from({ length: readerCount }, openOne));
      await waitUntilListsRest(stack);
      // Each of the answers takes about 10 MB as text.
      expectLittleGrowth(before, await heldMemory(stack));
      for (const count of await Promise.all(readers.map(countAppointments)))
        expect(count).toBe(timeslotCount * appointmentCount);
    });
  },
);

/** The response, of which nothing has been read. */
function open(method: string, at: string, body?: object): Promise<IncomingMessage> {
  const headers = { 'x-service-client-id': crm.key, ...(body && { 'content-type': 'application/json' }) };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${stack.info.gateway}/crms/${crm.crmId}${practice.at}${at}`,
      { method, headers, agent: false },
      resolve,
    );
    outgoing.on('error', reject).end(body && JSON.stringify(body));
  });
}

async function countAppointments(response: IncomingMessage): Promise<number> {
  expect(response.statusCode).toBe(200);
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  const timeslots = JSON.parse(text) as { appointments: unknown[] }[];
  return timeslots.reduce((sum, { appointments }) => sum + appointments.length, 0);
}
