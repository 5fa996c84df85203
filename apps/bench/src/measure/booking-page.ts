/**
 * Measures how long the first byte of a booking page takes that shows a week of 200 times, with few appointments in the
 * database and then among many: half of them are of the same provider and its two resources, in the past and the
 * future. Prints the medians, the 95th percentiles, and the size of the page as it is and compressed. Exits with 1 if
 * the median among many is above 30 ms, or more than twice that among few.
 *
 *   npx node apps/bench/src/measure/booking-page.ts [appointments]
 */
import { createCrm, createPractice, createTimeslot } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';
import { gzipSync } from 'node:zlib';

const appointments = Number(process.argv[2] ?? 1_000_000);
const timesShown = 200;
const maxFirstByteMs = 30;
const visits = 300;

await using stack = await startTestStack({ LOG_LEVEL: 'error' });
const { info } = stack;
const crm = await createCrm({}, info);
const practice = await createPractice(crm);
const resources = ['anna', 'ben'];
const monday = nextMonday();
for (const day of [0, 1, 2, 3, 4])
  for (const [index, resource] of resources.entries()) {
    // Ten hours in steps of 30 minutes and then of 15: each resource adds times of its own.
    const date = monday.add({ days: day }).toString();
    const [start, end] = index === 0 ? ['08:00', '18:00'] : ['08:15', '18:15'];
    await createTimeslot(practice, {
      resourceReference: resource,
      start: `${date}T${start}`,
      end: `${date}T${end}`,
      raster: 30,
    });
  }
const offers = [
  {
    productReference: 'massage',
    name: 'Massage',
    duration: 30,
    price: { value: 45, currency: 'EUR' },
    resources: resources.map((resourceReference) => ({ resourceReference, name: resourceReference })),
  },
];
const rules = await crm.put<{ bookingRules: { pageUrl: string } }>(`${practice.at}/booking-rules`, {
  page: true,
  offers,
});
const week = `${rules.body.bookingRules.pageUrl}?offer=massage&date=${monday.toString()}&lang=en`;

const few = await measure();
await fill(appointments / 2, practice.provider, resources);
await fill(appointments / 2, (await createPractice(crm)).provider, ['room']);
await query('calendar', 'ANALYZE', [], info);
const many = await measure();
for (const [what, { times }] of [['few', few] as const, [`${appointments}`, many] as const])
  console.log(
    `among ${what} appointments: ${percentile(times, 0.5).toFixed(1)} ms, 95 %: ${percentile(times, 0.95).toFixed(1)} ms`,
  );
console.log(`${many.page.length} bytes, ${gzipSync(many.page).length} compressed, ${many.shown} times`);
const [before, after] = [few, many].map(({ times }) => percentile(times, 0.5)) as [number, number];
if (after > maxFirstByteMs || after > 2 * before || many.shown !== timesShown) process.exitCode = 1;

function nextMonday(): Temporal.PlainDate {
  const today = Temporal.Now.plainDateISO('Europe/Berlin');
  return today.add({ days: 8 - today.dayOfWeek });
}

/** Around now, one in each quarter of an hour of the nights, where nothing can be booked. */
async function fill(count: number, provider: string, on: string[]): Promise<void> {
  await query(
    'calendar',
    `INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, starts_at, ends_at, capacity, taken,
                              accept_bookings, content_digest)
     SELECT crm_id, id, reference || '-' || n, ($3::text[])[1 + n % cardinality($3::text[])], 'massage', 'Massage', starts_at, starts_at + interval '15 minutes',
            1, 1, true, ''
       FROM provider, generate_series(1, $1::int) AS n,
            LATERAL (SELECT date_trunc('day', now()) + (n / 24 - $1::int / 48) * interval '1 day' + n % 24 * interval '15 minutes' - interval '2 hours') AS start (starts_at)
      WHERE provider.reference = $2`,
    [count, provider, on],
    info,
  );
}

/** One visitor after the other, each from another address. */
async function measure(): Promise<{ times: number[]; page: string; shown: number }> {
  const times: number[] = [];
  let page = '';
  for (let visit = 0; visit < visits; visit += 1) {
    const sentMs = performance.now();
    const headers = { 'x-forwarded-for': `10.1.${visit >> 8}.${visit & 255}` };
    const response = await fetch(week, { headers });
    times.push(performance.now() - sentMs);
    page = await response.text();
    if (response.status !== 200) throw new Error(`${response.status}: ${page}`);
  }
  return { times, page, shown: page.match(/name="slot"/g)?.length ?? 0 };
}

function percentile(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)]!;
}
