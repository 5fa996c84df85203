/**
 * The noisy-neighbour table: one tenant (or a stranger) at its limit, another one measured. For each kind of noise it
 * prints how long bookings of the other tenant take, compared with those in the quiet before, what else the noise would
 * disturb first, and the memory of the gateway, calendar and page. The bounds of all rows come from the quiet before all
 * noises, because one percent of a single measurement is two requests; before a few noises it lasts longer. Exits with
 * 1 if a row is out of bounds.
 *
 *   npm run attack [name of a noise …]
 */
import { waitUntil } from '@scheduling/embedded';
import { randomInt, randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  createTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { fillFeed } from '../fill-feed.ts';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';
import { hoursOfMany, hoursRequests } from './hours-noises.ts';
import type { Disturbed, Statuses, Target } from './noise.ts';
import { bigAppointment, erasedAddresses, fullDay, noises, tooFullDay } from './noises.ts';

/**
 * How long the quiet before a noise lasts, and all of them together: in less, one percent of the bookings is one or
 * two.
 */
const shortestQuietMs = 8_000;
const shortestQuietInAllMs = 24_000;
const noisyMs = 16_000;
/** How long a noise lasts before the measurement. */
const warmUpMs = 2_000;
const requestsPerSecond = 25;
/** Between two measurements of what else a noise disturbs: a CRM can send 30 tests of webhooks in a minute. */
const disturbedEveryMs = 2_500;
/** Whose memory is measured. */
const watched = ['gateway', 'calendar', 'page'] as const;
/** What each of them may hold. */
const maxMebibytes = 400;
/** How long an erasure may take, during a noise, too. */
const maxErasureMs = 10_000;

const chosen = process.argv.slice(2);
await using stack = await startTestStack({ LOG_LEVEL: 'error' });
const sandbox = await sandboxWithHours();
const [noisy, neighbour] = [await tenant(), await tenant()];
await fill(noisy);
const disturbed: Record<Disturbed, () => Promise<unknown>> = {
  events: async () => expectStatus(200, await neighbour.crm.get('/events', { query: { limit: 1 } })),
  test: await webhookTest(neighbour.crm),
  confirmation: () => confirm(noisy),
  erasure: () => erase(neighbour),
  page: () => openTimes(neighbour),
  'booking page': () => bookOnPage(neighbour),
  api: () => listSlots(noisy),
};
await book(500);

interface Row {
  name: string;
  quiet: Measured;
  loud: Measured;
  /** What else it disturbs. */
  other: { name: Disturbed; quiet: Measured; loud: Measured } | undefined;
  memory: Memory;
  statuses: Statuses;
}

const rows: Row[] = [];
const made = noises.filter((each) => chosen.length === 0 || chosen.some((part) => each.name.includes(part)));
const quietMs = Math.max(shortestQuietMs, shortestQuietInAllMs / made.length);
for (const { name, disturbs } of made) {
  console.error(name);
  const [quiet, quietOther] = await Promise.all([
    book((quietMs / 1_000) * requestsPerSecond),
    measureOther(disturbs, quietMs),
  ]);
  // The tests of an earlier noise do not count.
  await query('webhook', 'DELETE FROM webhook_test WHERE crm_id = $1', [noisy.crm.crmId], stack.info);
  const stopNoise = await startNoise(name);
  const stopWatching = watchMemory();
  const [loud, loudOther] = await Promise.all([
    book((noisyMs / 1_000) * requestsPerSecond),
    measureOther(disturbs, noisyMs),
  ]);
  const memory = await stopWatching();
  const other = disturbs && { name: disturbs, quiet: quietOther, loud: loudOther };
  rows.push({ name, quiet, loud, other, memory, statuses: await stopNoise() });
  await settle();
}

const quietP99 = percentile(
  rows.flatMap(({ quiet }) => quiet.times),
  0.99,
);
const columns = [
  'noise',
  'quiet p50 / p99',
  'noisy p50 / p99',
  'failures',
  'what else: quiet, noisy p50, failures',
  ...watched,
  'responses to the noise',
  'within bounds',
];
console.log(`| ${columns.join(' | ')} |\n|${'---|'.repeat(columns.length)}`);
for (const { name, quiet, loud, other, memory, statuses } of rows) {
  const isGood = isWithinBounds(loud, memory) && (other === undefined || isUndisturbed(other));
  if (!isGood) process.exitCode = 1;
  const latencies = [quiet, loud].map(
    ({ times }) => `${percentile(times, 0.5).toFixed(1)} / ${percentile(times, 0.99).toFixed(1)} ms`,
  );
  const failures = `${loud.failures} of ${loud.times.length + loud.failures}`;
  console.log(
    `| ${[name, ...latencies, failures, describeOther(other), ...watched.map((service) => `${memory[service]} MiB`), describe(statuses), isGood ? 'yes' : 'NO'].join(' | ')} |`,
  );
}
console.log(`\np99 in the quiet before all of them: ${quietP99.toFixed(1)} ms`);

/** Resolves when the noise has lasted for a while; the result stops it. */
async function startNoise(name: string): Promise<() => Promise<Statuses>> {
  const program = fileURLToPath(import.meta.resolve('./noise-process.ts'));
  const child = spawn(process.execPath, [program, name, JSON.stringify(noisy.target)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // Elsewhere it would run on another machine; here it should not take the processor from what it disturbs.
  setPriority(child.pid!, constants.priority.PRIORITY_LOW);
  const output = text(child.stdout);
  await delay(warmUpMs);
  return async () => {
    child.kill('SIGTERM');
    return JSON.parse(await output) as Statuses;
  };
}

function isWithinBounds(loud: Measured, memory: Memory): boolean {
  const p99 = percentile(loud.times, 0.99);
  return (
    loud.failures === 0 &&
    p99 <= 3 * quietP99 &&
    p99 <= quietP99 + 100 &&
    Math.max(...Object.values(memory)) < maxMebibytes
  );
}

function isUndisturbed({ name, quiet, loud }: NonNullable<Row['other']>): boolean {
  if (name === 'erasure') return loud.failures === 0 && Math.max(...loud.times) <= maxErasureMs;
  const [before, during] = [quiet, loud].map(({ times }) => percentile(times, 0.5)) as [number, number];
  return loud.failures === 0 && during <= Math.max(3 * before, before + 100);
}

/** One after the other, for so long. */
async function measureOther(what: Disturbed | undefined, lengthMs: number): Promise<Measured> {
  const measured: Measured = { times: [], failures: 0 };
  if (what === undefined) return measured;
  const endsMs = performance.now() + lengthMs;
  while (performance.now() < endsMs) {
    const sentMs = performance.now();
    try {
      await disturbed[what]();
      measured.times.push(performance.now() - sentMs);
    } catch (error) {
      measured.failures += 1;
      console.error(new Date().toISOString(), `${what} failed:`, error);
    }
    await delay(Math.max(0, sentMs + disturbedEveryMs - performance.now()));
  }
  return measured;
}

/** Its endpoint does not exist: only whether the test is accepted matters here. */
async function webhookTest(crm: TestCrm): Promise<() => Promise<unknown>> {
  expectStatus(201, await crm.post('/webhooks', { reference: 'hook', url: 'http://127.0.0.1:9/' }));
  return async () => expectStatus(202, await crm.post('/webhooks/hook/test', undefined));
}

/** Books for somebody, and waits for the mail. */
async function confirm({ crm, practice, target }: Tenant): Promise<void> {
  const customerReference = unique('somebody');
  const email = `${customerReference}@customers.example`;
  expectStatus(
    201,
    await crm.post(`${practice.at}/customers`, {
      customerReference,
      providerReference: practice.provider,
      userName: 'Somebody',
      email,
    }),
  );
  await createParticipation(practice, target.appointment, { customerReference });
  await waitForMails(email, 1, stack.info);
}

/** Erases the address of somebody, and waits until that is complete. */
async function erase({ crm, practice }: Tenant): Promise<void> {
  const customerReference = unique('somebody');
  const email = `${customerReference}@customers.example`;
  expectStatus(
    201,
    await crm.post(`${practice.at}/customers`, {
      customerReference,
      providerReference: practice.provider,
      userName: 'Somebody',
      email,
    }),
  );
  const requested = await crm.post<{ erasure: { id: string } }>('/erasures', { email });
  expectStatus(202, requested);
  const isComplete = async () =>
    (await crm.get<{ erasure: { completedAt: string | null } }>(`/erasures/${requested.body.erasure.id}`)).body.erasure
      .completedAt !== null;
  await waitUntil(isComplete, { what: 'the erasure', timeoutMs: 60_000, intervalMs: 100 });
}

/** As a person does whose address nobody else has. */
async function openTimes({ target }: Tenant): Promise<void> {
  const response = await fetch(`${target.link}/move`, { headers: { 'x-forwarded-for': '203.0.113.1' } });
  expectStatus(200, { status: response.status, text: await response.text() });
}

/** As a person does whose address nobody else has: opens the page, chooses a time and sends the form. */
async function bookOnPage({ target }: Tenant): Promise<void> {
  const headers = { 'x-forwarded-for': `203.0.113.${randomInt(1, 255)}` };
  const form = (fields: Record<string, string>) => ({
    method: 'POST',
    headers,
    redirect: 'manual' as const,
    body: new URLSearchParams(fields),
  });
  const week = await fetch(target.bookingPage, { headers });
  const shown = await week.text();
  expectStatus(200, { status: week.status, text: shown });
  const slot = [...shown.matchAll(/name="slot" value="([^"]+)"/g)].at(-1)![1]!;
  const chosen = await fetch(`${target.bookingPage}/hold`, form({ offer: 'page', slot }));
  expectStatus(303, { status: chosen.status, text: await chosen.text() });
  const address = new URL(chosen.headers.get('location')!, target.bookingPage);
  const person = { name: 'Somebody', email: `${unique('somebody')}@customers.example` };
  const sent = await fetch(address, form(person));
  expectStatus(303, { status: sent.status, text: await sent.text() });
}

async function listSlots({ crm, practice }: Tenant): Promise<void> {
  expectStatus(200, await crm.get(`${practice.at}/slots`, { query: { limit: 100 } }));
}

function expectStatus(expected: number, { status, text }: { status: number; text: string }): void {
  if (status !== expected) throw new Error(`${status} ${text}`);
}

async function sandboxWithHours(): Promise<Target['sandbox']> {
  const crm = await createCrm({ sandbox: true }, stack.info);
  const { at } = await createPractice(crm);
  for (let number = 0; number < hoursRequests; number += 1)
    expectStatus(200, await crm.put(`${at}/hours`, undefined, { rawBody: hoursOfMany(number, 30) }));
  return { crmId: crm.crmId, key: crm.key };
}

interface Tenant {
  crm: TestCrm;
  practice: Practice;
  target: Target;
}

async function tenant(): Promise<Tenant> {
  const crm = await createCrm({ requestsPerMinute: 6_000 }, stack.info);
  const practice = await createPractice(crm);
  const appointment = await createAppointment(practice, { capacity: 1_000_000 });
  const { gateway: url } = stack.info;
  return {
    crm,
    practice,
    target: {
      url,
      crmId: crm.crmId,
      key: crm.key,
      provider: practice.at,
      resource: practice.resource,
      customer: practice.customer,
      appointment,
      sandbox,
      ...(await addressesOfPages(practice)),
    },
  };
}

/** The link of a booking for which a week has 2,000 times, and a booking page with the same times. */
async function addressesOfPages(practice: Practice): Promise<Pick<Target, 'link' | 'bookingPage'>> {
  const { crm, at, product, customer, resource } = practice;
  const resources = [{ resourceReference: resource, name: 'Room' }];
  const offers = [{ productReference: 'page', name: 'Page', duration: 5, resources }];
  const rules = await crm.put<{ bookingRules: { pageUrl: string } }>(`${at}/booking-rules`, { page: true, offers });
  expectStatus(200, rules);
  const today = Temporal.Now.plainDateISO('Europe/Berlin');
  const timeslotReference = await createTimeslot(practice, {
    start: `${today.add({ days: 1 }).toString()}T00:00`,
    end: `${today.add({ days: 29 }).toString()}T00:00`,
    raster: 5,
  });
  const reference = unique('booking');
  const booked = await crm.post(`${at}/bookings?sendMails=false`, {
    reference,
    timeslotReference,
    start: `${today.add({ days: 10 }).toString()}T10:00`,
    productReference: product,
    state: 'BOOKED',
    customerReference: customer,
  });
  expectStatus(201, booked);
  const linked = await crm.get<{ link: { url: string } }>(`${at}/participations/${reference}/link`);
  expectStatus(200, linked);
  return { link: linked.body.link.url, bookingPage: rules.body.bookingRules.pageUrl };
}

/** What the lists of the noisy tenant show, and what its webhooks are sent. */
async function fill({ crm, practice, target }: Tenant): Promise<void> {
  await fillFeed(crm.crmId, 100_000, stack.info);
  for (let number = 0; number < 100; number += 1)
    await crm.post(`${practice.at}/appointments?sendMails=false`, undefined, {
      rawBody: bigAppointment(`big-${target.resource}`),
    });
  const resource = `pairs-${target.resource}`;
  const customers = await query<{ id: string }>(
    'customer',
    `INSERT INTO customer (crm_id, provider_id, provider_reference, reference, user_name, email)
     SELECT crm_id, provider_id, provider_reference, 'erased-' || number || '-' || erased.email, 'Somebody', erased.email
       FROM customer AS known, unnest($2::text[]) AS erased (email), generate_series(1, 50) AS number
      WHERE crm_id = $1 AND reference = $3
     RETURNING id`,
    [crm.crmId, erasedAddresses, practice.customer],
    stack.info,
  );
  // As if the events about their creation had come. Those about their deletion would wait for them.
  const ids = customers.map(({ id }) => id);
  await query(
    'webhook',
    'INSERT INTO latest_version (crm_id, subject_id, version) SELECT $1, unnest($2::uuid[]), 1',
    [crm.crmId, ids],
    stack.info,
  );
  const slot = {
    resourceReference: resource,
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'BOOKABLE',
  };
  const timeslots = Array.from({ length: 40 }, () => ({ ...slot, start: '2031-01-01T00:00', end: '2031-12-31T00:00' }));
  await crm.post(`${practice.at}/timeslots`, { timeslots });
  const texts = { description: 'x'.repeat(1_000), notes: 'x'.repeat(1_000) };
  const inFebruary = { ...texts, start: '2031-02-01T00:00', end: '2031-02-01T00:01' };
  await fillResource(practice, { ...inFebruary, resourceReference: resource }, 200);
  await fillResource(practice, { ...inFebruary, resourceReference: `shared-${target.resource}` }, 10_000);

  await fillDay(practice, `full-${target.resource}`, fullDay, 3_900);
  await fillResource(
    practice,
    {
      resourceReference: `full-${target.resource}`,
      start: `${fullDay}T12:00`,
      end: `${fullDay}T12:15`,
      acceptBookings: true,
      capacity: 1,
    },
    1_000,
    0,
  );
  await fillDay(practice, `too-full-${target.resource}`, tooFullDay, 30_000);
}

/** As many of the same appointment, one in each minute unless stated otherwise. */
async function fillResource(
  practice: Practice,
  first: Record<string, unknown>,
  count: number,
  minutesApart = 1,
): Promise<void> {
  const reference = await createAppointment(practice, first);
  await query(
    'calendar',
    `INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, notes, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
     SELECT crm_id, provider_id, reference || number, resource_reference, product_reference, description, notes,
            starts_at + number * make_interval(mins => $4), ends_at + number * make_interval(mins => $4), capacity, taken, accept_bookings, content_digest
       FROM appointment, generate_series(1, $3) AS number
      WHERE crm_id = $1 AND reference = $2`,
    [practice.crm.crmId, reference, count - 1, minutesApart],
    stack.info,
  );
}

/** Bookable timeslots that overlap each other, from each minute between 8 and 9 until 20. */
async function fillDay({ at, crm }: Practice, resourceReference: string, day: string, count: number): Promise<void> {
  const reference = unique('overlapping');
  const slot = { raster: 15, defaultCapacity: 1, defaultAcceptBookings: true, state: 'BOOKABLE' };
  expectStatus(
    201,
    await crm.post(`${at}/timeslots`, {
      timeslots: [{ ...slot, reference, resourceReference, start: `${day}T08:00`, end: `${day}T20:00` }],
    }),
  );
  await query(
    'calendar',
    `INSERT INTO timeslot (crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster, default_capacity, default_accept_bookings, state, content_digest)
     SELECT crm_id, provider_id, reference || number, resource_reference, starts_at + number % 60 * interval '1 minute', ends_at, raster, default_capacity, default_accept_bookings, state, content_digest
       FROM timeslot, generate_series(1, $3) AS number
      WHERE crm_id = $1 AND reference = $2`,
    [crm.crmId, reference, count - 1],
    stack.info,
  );
}

/** In MiB. */
type Memory = Record<(typeof watched)[number], number>;

interface Measured {
  times: number[];
  failures: number;
}

/** Books for the neighbour at an even rate, whether the previous ones have been answered or not. */
async function book(count: number): Promise<Measured> {
  const { target } = neighbour;
  const measured: Measured = { times: [], failures: 0 };
  const all: Promise<void>[] = [];
  const startedMs = performance.now();
  for (let number = 0; number < count; number += 1) {
    await delay(Math.max(0, startedMs + (number * 1_000) / requestsPerSecond - performance.now()));
    all.push(bookOne(target, measured));
  }
  await Promise.all(all);
  return measured;
}

async function bookOne(
  { url, crmId, key, provider, appointment, customer }: Target,
  measured: Measured,
): Promise<void> {
  const sentMs = performance.now();
  try {
    const response = await fetch(`${url}/crms/${crmId}${provider}/participations?sendMails=false`, {
      method: 'POST',
      headers: { 'x-service-client-id': key, 'content-type': 'application/json' },
      body: JSON.stringify({
        reference: randomUUID(),
        appointmentReference: appointment,
        customerReference: customer,
        state: 'BOOKED',
      }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    if (response.status !== 201) throw new Error(`${response.status} ${text}`);
    measured.times.push(performance.now() - sentMs);
  } catch (error) {
    measured.failures += 1;
    console.error(new Date().toISOString(), 'a booking of the neighbour failed:', error);
  }
}

function percentile(times: number[], share: number): number {
  return times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
}

function describeOther(other: Row['other']): string {
  if (other === undefined) return '';
  const { name, quiet, loud } = other;
  const [before, during] = [quiet, loud].map(({ times }) => `${percentile(times, 0.5).toFixed(0)} ms`);
  return `${name}: ${before}, ${during}, ${loud.failures} of ${loud.times.length + loud.failures}`;
}

function describe(statuses: Statuses): string {
  return Object.entries(statuses)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
}

/** The most memory that the processes hold until the returned function is called. */
function watchMemory(): () => Promise<Memory> {
  const peaks: Memory = { gateway: 0, calendar: 0, page: 0 };
  const ended = new AbortController();
  const watching = (async () => {
    while (!ended.signal.aborted) {
      const { pids } = await stack.currentInfo();
      for (const service of watched) {
        const status = await readFile(`/proc/${pids[service]}/status`, 'utf8').catch(() => '');
        peaks[service] = Math.max(peaks[service], Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024));
      }
      await delay(250);
    }
  })();
  return async () => {
    ended.abort();
    await watching;
    return peaks;
  };
}

/** Until the gateway answers as in the quiet again. */
async function settle(): Promise<void> {
  for (let calm = 0; calm < 10;) {
    const startedMs = performance.now();
    await bookOne(neighbour.target, { times: [], failures: 0 });
    calm = performance.now() - startedMs < 50 ? calm + 1 : 0;
    await delay(100);
  }
}
