import { eventually, type MetricSample, readSamples } from '@scheduling/testing';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { services } from '@scheduling/stack';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  createTimeslot,
  newTimeslot,
  type Practice,
  type TestCrm,
} from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { readUsedExpressions } from './observability-files.ts';
import { readExpression } from './promql.ts';

/** Labels that Prometheus itself adds to every sample of a target. */
const targetLabels = ['job', 'instance', 'namespace', 'pod', 'container'];
/**
 * The metrics of others, which no test can scrape: of Kubernetes, of CloudNativePG and its plugin for backups, and of
 * the exporter of NATS.
 */
const foreignMetric = /^(kube|kubelet|cnpg|barman_cloud|jetstream)_/;
/** The databases of the stack are not archived. */
const absentMetric = 'scheduling_postgres_archive_age_seconds';
/** The only labels that metrics may have; each has few values, and none refers to a person. */
const allowedLabels = new Set([
  'service',
  'method',
  'route',
  'status',
  'rpc_service',
  'rpc_method',
  'rpc_status',
  'crm',
  'outcome',
  'reason',
  'consumer',
  'dependency',
  'subject',
  'state',
  'le',
  // Of the Node process, by prom-client.
  'type',
  'kind',
  'space',
  'version',
  'major',
  'minor',
  'patch',
]);

let crm: TestCrm;
let practice: Practice;
let participation: string;

beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
  participation = await createParticipation(practice, await createAppointment(practice));
  await waitForMails(practice.customerEmail, 1);
  await crm.get(`${practice.at}/slots`);
  await bookOnPage(practice);
});

/** Chooses a time, and sends the form. */
async function bookOnPage({ at, resource }: Practice): Promise<void> {
  const resources = [{ resourceReference: resource, name: 'Room' }];
  const offers = [{ productReference: 'page', name: 'Page', duration: 30, resources }];
  const { body } = await crm.put<{ bookingRules: { pageUrl: string } }>(`${at}/booking-rules`, { page: true, offers });
  const { pageUrl } = body.bookingRules;
  await createTimeslot(practice, { start: '2099-06-01T10:00', end: '2099-06-01T12:00', raster: 30 });
  const slot = '2099-06-01T08:00:00.000Z';
  const post = (url: string | URL, form: Record<string, string>) =>
    fetch(url, { method: 'POST', redirect: 'manual', body: new URLSearchParams(form) });
  const chosen = await post(`${pageUrl}/hold`, { offer: 'page', slot });
  expect(chosen.status).toBe(303);
  const form = new URL(chosen.headers.get('location')!, pageUrl);
  expect((await post(form, { name: 'Visitor', email: 'visitor@example.com' })).status).toBe(303);
}

async function scrape(): Promise<string> {
  const texts = services.map(async (service) => {
    const response = await fetch(`${inject('stack').operations[service]}/metrics`);
    expect(response.status).toBe(200);
    return response.text();
  });
  return (await Promise.all(texts)).join('');
}

describe('the alerts and the dashboard', () => {
  it('use metrics and labels that exist', async () => {
    const used = await readUsedExpressions();
    expect(used.length).toBeGreaterThan(50);
    await eventually(async () => {
      const text = await scrape();
      const existing = labelsByMetric(readSamples(text));
      expect(existing.has(absentMetric)).toBe(false);
      expect(text).toContain(`# TYPE ${absentMetric} gauge`);
      existing.set(absentMetric, new Set([...targetLabels, 'service']));
      expect(
        used.flatMap(({ where, ...rest }) => faultsOf(rest, existing).map((fault) => `${where} ${fault}`)),
      ).toEqual([]);
    });
  });

  it('are checked by code that detects a wrong metric, label or bracket', () => {
    const existing = labelsByMetric([{ name: 'requests_total', labels: { route: '/' }, value: 1 }]);
    const faults = (expression: string, ...mentionedLabels: string[]): string[] =>
      faultsOf({ expression, mentionedLabels }, existing);
    expect(faults('sum by (route, namespace) (rate(requests_total{route="/"}[5m]))', 'route')).toEqual([]);
    expect(faults('rate(request_total[5m])')).toEqual(['uses the metric request_total, which does not exist']);
    expect(faults('requests_total{path="/"}')).toEqual(['uses the label path, which requests_total does not have']);
    expect(faults('sum by (path) (requests_total)')).toEqual([
      'uses the label path, which requests_total does not have',
    ]);
    expect(faults('sum by (route) (requests_total)', 'job')).toEqual([
      'mentions the label job, which its result does not have',
    ]);
    expect(faults('kube_requests_total{path="/"} + requests_totals')).toEqual([
      'uses the metric requests_totals, which does not exist',
    ]);
    expect(faults('sum by (path) (kube_requests_total)', 'job')).toEqual([
      'mentions the label job, which its result does not have',
    ]);
    expect(faults('sum(requests_total')).toEqual(['cannot be read at ""']);
  });
});

describe('the metrics', () => {
  it('follow the conventions: a help text, base units, and _total for counters', async () => {
    const text = await scrape();
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]));
    const helps = new Map([...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name = '', help = '']) => [name, help]));
    expect(types.size).toBeGreaterThan(40);
    for (const [name, type] of types) {
      expect(helps.get(name)?.length, name).toBeGreaterThan(5);
      // prom-client names the metrics of the Node process.
      if (/^(process|nodejs)_/.test(name)) continue;
      expect(name).toMatch(/^(scheduling|http_server|rpc_(server|client))_[a-z_]+$/);
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      expect(name, 'base units').not.toMatch(/_(ms|milliseconds|minutes|hours|kb|mb|percent)(_|$)/);
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    }
  });

  it('contain no personal data, and name a CRM only where bookings and slots are counted', async () => {
    const samples = readSamples(await scrape());
    const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)));
    expect([...labels].filter((label) => !allowedLabels.has(label))).toEqual([]);
    const withCrm = new Set(samples.filter((sample) => 'crm' in sample.labels).map(({ name }) => name));
    expect([...withCrm].toSorted()).toEqual([
      'scheduling_bookings_total',
      'scheduling_page_choices_total',
      'scheduling_page_forms_total',
      'scheduling_slots_listed_total',
    ]);
    const values = samples.flatMap((sample) => Object.values(sample.labels)).join(' ');
    for (const personal of [
      practice.customer,
      practice.customerEmail,
      practice.owner,
      practice.provider,
      participation,
    ])
      expect(values).not.toContain(personal);
  });

  it('count a booking of this CRM, and its rejections by reason', async () => {
    const own = await createPractice(crm);
    const before = await countBookings();
    const appointment = await createAppointment(own, { capacity: 1 });
    await createParticipation(own, appointment);
    const { status } = await crm.post(`${own.at}/participations`, {
      reference: 'refused@test',
      appointmentReference: appointment,
      customerReference: own.customer,
      state: 'BOOKED',
    });
    expect(status).toBe(409);
    expect(await countBookings()).toEqual({
      ...before,
      booked: before.booked + 1,
      capacity_exhausted: before.capacity_exhausted + 1,
    });
  });

  it('count the slots that were listed, and the rejections of slots by reason', async () => {
    const own = await createPractice(crm);
    const timeslot = newTimeslot(own);
    await crm.post(`${own.at}/timeslots`, { timeslots: [timeslot] });
    const [listed, refused] = [await countListed(), (await countBookings()).slot_off_raster];
    await crm.get(`${own.at}/slots`, { query: { from: '2031-03-01T00:00', to: '2031-03-31T00:00' } });
    const booking = {
      reference: 'off-raster@test',
      timeslotReference: timeslot['reference'],
      start: '2031-03-03T08:10',
      productReference: own.product,
      customerReference: own.customer,
      state: 'BOOKED',
    };
    expect(await crm.post(`${own.at}/bookings`, booking)).toMatchObject({
      status: 409,
      body: { reason: 'off_raster' },
    });
    expect([await countListed(), (await countBookings()).slot_off_raster]).toEqual([listed + 8, refused + 1]);
  });

  it('use one name for all requests that match no route', async () => {
    const { gateway } = inject('stack');
    for (const path of ['/wp-admin.php', '/crms/x/y/z', '/%00']) await fetch(gateway + path, { method: 'PROPFIND' });
    await eventually(async () => {
      const requests = readSamples(await scrape()).filter(
        ({ name }) => name === 'http_server_request_duration_seconds_count',
      );
      expect(requests.map(({ labels }) => labels['route'])).toContain('unmatched');
      expect(requests.filter(({ labels }) => /wp-admin|%/.test(labels['route'] ?? ''))).toEqual([]);
      expect(new Set(requests.map(({ labels }) => labels['method']))).not.toContain('PROPFIND');
    });
  });

  async function countBookings(): Promise<Record<'booked' | 'capacity_exhausted' | 'slot_off_raster', number>> {
    const own = readSamples(await scrape()).filter(
      ({ name, labels }) => name === 'scheduling_bookings_total' && labels['crm'] === crm.crmId,
    );
    const count = (outcome: string): number => own.find(({ labels }) => labels['outcome'] === outcome)?.value ?? 0;
    return {
      booked: count('booked'),
      capacity_exhausted: count('capacity_exhausted'),
      slot_off_raster: count('slot_off_raster'),
    };
  }

  async function countListed(): Promise<number> {
    return (
      readSamples(await scrape()).find(
        ({ name, labels }) => name === 'scheduling_slots_listed_total' && labels['crm'] === crm.crmId,
      )?.value ?? 0
    );
  }
});

/** The labels of each metric's samples, with those that Prometheus adds. */
function labelsByMetric(samples: MetricSample[]): Map<string, Set<string>> {
  const existing = new Map([['up', new Set(targetLabels)]]);
  for (const { name, labels } of samples) {
    existing.set(name, (existing.get(name) ?? new Set(targetLabels)).union(new Set(Object.keys(labels))));
  }
  return existing;
}

function faultsOf(
  { expression, mentionedLabels }: { expression: string; mentionedLabels: string[] },
  existing: Map<string, Set<string>>,
): string[] {
  const { syntaxErrors, metrics, resultLabels } = readExpression(expression);
  if (syntaxErrors.length > 0 || metrics.length === 0) return [syntaxErrors[0] ?? 'names no metric'];
  const faults = metrics.flatMap(({ name, labels }) => {
    if (foreignMetric.test(name)) return [];
    const known = existing.get(name);
    if (known === undefined) return [`uses the metric ${name}, which does not exist`];
    return labels
      .filter((label) => !known.has(label))
      .map((label) => `uses the label ${label}, which ${name} does not have`);
  });
  const result = new Set(resultLabels ?? metrics.flatMap(({ name }) => [...(existing.get(name) ?? [])]));
  const mentioned = mentionedLabels
    .filter((label) => !result.has(label))
    .map((label) => `mentions the label ${label}, which its result does not have`);
  return [...new Set([...faults, ...mentioned])];
}
