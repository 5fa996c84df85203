/**
 * Measures whether a new system is slower than an established one: starts a stack with empty data, books with 16 clients for two minutes, and
 * prints the bookings per second. Each booking goes to one of 200 appointments.
 *
 *   npx node apps/local/test/measure/first-minutes.ts [seconds]
 */
import { randomUUID } from 'node:crypto';
import { createCrm, createPractice, createAppointment } from '../http/crm.ts';
import { startTestStack } from '../http/start-test-stack.ts';

const durationSeconds = Number(process.argv[2] ?? 120);
const clients = 16;
const appointments = 200;

await using stack = await startTestStack();
const crm = await createCrm({}, stack.info);
const practice = await createPractice(crm);
const capacity = 1_000_000;
const references = await Promise.all(Array.from({ length: appointments }, () => createAppointment(practice, { capacity })));

const url = `${stack.info.gateway}/crms/${crm.crmId}${practice.at}/participations?sendMails=false`;
const headers = { 'x-service-client-id': crm.key, 'content-type': 'application/json' };
const booked = Array.from({ length: durationSeconds }, () => 0);
const startedAt = performance.now();
await Promise.all(Array.from({ length: clients }, book));
for (let second = 0; second < durationSeconds; second += 10) {
  console.log(`${String(second).padStart(4)} s  ${booked.slice(second, second + 10).map((count) => String(count).padStart(5)).join('')}`);
}
const [first, last] = [booked.slice(0, 30), booked.slice(-30)].map((part) => part.reduce((sum, count) => sum + count, 0));
console.log(`bookings of the first 30 s to those of the last: ${(first! / last!).toFixed(2)}`);

async function book(): Promise<void> {
  for (;;) {
    const appointmentReference = references[Math.floor(Math.random() * appointments)];
    const body = JSON.stringify({ reference: `${randomUUID()}@measure`, appointmentReference, customerReference: practice.customer, state: 'BOOKED' });
    const response = await fetch(url, { method: 'POST', headers, body });
    if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
    await response.body?.cancel();
    const second = Math.floor((performance.now() - startedAt) / 1_000);
    if (second >= durationSeconds) return;
    booked[second]! += 1;
  }
}
