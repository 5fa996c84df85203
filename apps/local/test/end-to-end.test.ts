import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { createClient as createApiClient } from '@scheduling/client';
import { freePort, waitUntil } from '@scheduling/embedded';
import { CustomerRemovalServiceService } from '@scheduling/contracts/calendar/v1';
import { createClient, openCredentials, type RpcCredentials } from '@scheduling/rpc';
import { databaseServices, repositoryRoot, type Service, services } from '@scheduling/stack';
import {
  type CollectedSpan,
  createCertificateAuthority,
  eventually,
  longTimeout,
  type SpanCollector,
  startAppProcess,
  startSpanCollector,
  storeCertificate,
  sumSamples,
  testLogger,
} from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstRequest } from '../src/banner.ts';
import { ensureDemoPage } from '../src/demo-page.ts';
import { fillCalendar, type Filled } from '../src/fill-calendar.ts';
import { readSettings } from '../src/config.ts';
import { createAdminClient } from '@scheduling/stack/admin-client';
import { type DemoStep, playDemo } from '../src/play-demo.ts';
import { createReporter } from '../src/reporter.ts';
import { type Stack, startStack } from '../src/start-stack.ts';
import { inherited, runAdmin } from '@scheduling/test-stack/command';
import { findRefusals, methodsOf } from './probe-rpcs.ts';
import { commandsOf, readBlocks } from '@scheduling/testing/shell-blocks';

const run = promisify(execFile);
let folder: string;
let dataDir: string;
let certificates: Record<'GRPC_TLS_CERT_FILE' | 'GRPC_TLS_KEY_FILE' | 'GRPC_TLS_CA_FILE', string>;
let stack: Stack;
let collector: SpanCollector;
const clients = new DisposableStack();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'end-to-end-'));
  dataDir = join(folder, 'data');
  certificates = await renewCertificates();
  const output = new PassThrough().resume();
  collector = await startSpanCollector();
  const environment = {
    SCHEDULING_PORT: '0',
    SCHEDULING_DATA: dataDir,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    ...certificates,
  };
  const settings = readSettings({ fresh: false }, { ...inherited(), ...environment });
  stack = await startStack(settings, createReporter(output as unknown as NodeJS.WriteStream));
}, 400_000);

afterAll(async () => {
  clients.dispose();
  await stack?.stop();
  await collector?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}, 30_000);

/** Puts a certificate for each process where it reads it, all of a new certificate authority. */
async function renewCertificates(): Promise<typeof certificates> {
  const authority = await createCertificateAuthority();
  for (const name of [...services, 'admin', 'stranger'])
    await storeCertificate(join(folder, 'certificates', name), await authority.issue(name), authority);
  const file = (name: string): string => join(folder, 'certificates', '{service}', name);
  return { GRPC_TLS_CERT_FILE: file('tls.crt'), GRPC_TLS_KEY_FILE: file('tls.key'), GRPC_TLS_CA_FILE: file('ca.crt') };
}

/** With mutual TLS between its services and with tracing, unlike any other test over HTTP. */
describe('the whole stack', { timeout: 120_000 }, () => {
  it('books an appointment over HTTP and delivers the confirmation', async () => {
    const { steps, mail } = await play('first');
    expect(steps.map(({ status }) => status)).toEqual([201, 201, 201, 200, 200, 201, 200]);
    expect(steps.at(-1)?.answer).toMatchObject([
      {
        state: 'ACTIVE',
        capacity: 1,
        description: 'Haircut',
        participations: [{ reference: 'booking-first@demo', state: 'BOOKED', name: 'Grace Hopper' }],
      },
    ]);
    expect(mail?.to).toMatchObject([{ address: 'grace-first@example.com' }]);
    expect(mail?.text).toContain('See you soon!');
  });

  it('fills a calendar, and finds what it has filled when it is repeated', async () => {
    const filled = await seed();
    expect(filled).toMatchObject({ rejected: 0, providers: ['praxis-am-park@seed', 'studio-blum@seed'] });
    expect(filled.bookings).toBeGreaterThan(100);
    expect(await seed()).toEqual(filled);
  });

  it('has a booking page with times, and leaves it as a developer has changed it', async () => {
    const { gateway, crmId, apiKey, page, bookingPage } = stack.info;
    const client = createApiClient({ url: gateway, crmId, key: apiKey });
    const params = { path: { providerRef: 'linden@demo' } };
    const listTimes = async () =>
      (await client.GET('/provider/{providerRef}/slots', { params: { ...params, query: { duration: 60 } } })).data;
    const setPage = (isOn: boolean) =>
      client.PUT('/provider/{providerRef}/booking-rules', { params, body: { page: isOn } });
    expect(bookingPage).toMatch(new RegExp(`^${RegExp.escape(page)}/book/[-\\da-f]{36}$`));
    const [first, ...others] = await listTimes();
    expect(others.length).toBeGreaterThan(50);
    await client.PUT('/provider/{providerRef}/timeslots/{timeslotRef}', {
      params: { path: { ...params.path, timeslotRef: first!.timeslotReference! } },
      body: { state: 'CREATED' },
    });
    await setPage(false);
    expect(await ensureDemoPage(client)).toBeNull();
    const left = await listTimes();
    expect(left.map(({ timeslotReference }) => timeslotReference)).not.toContain(first!.timeslotReference);
    expect(left.length).toBeGreaterThan(50);
    await setPage(true);
    expect(await ensureDemoPage(client)).toBe(bookingPage);
  });

  it('produces one trace of a booking, from the request to the mail, without personal data', async () => {
    const { mail } = await play('traced');
    expect(mail).toBeDefined();
    // Each service exports its spans on its own schedule.
    await eventually(() => {
      const booking = traceOf('bookings', 'send mail');
      expect(booking.map(({ service }) => service)).toEqual(
        expect.arrayContaining(['gateway', 'identity', 'calendar', 'customer', 'notification']),
      );
      const ids = new Set(booking.map(({ spanId }) => spanId));
      const [root, ...others] = booking.filter(({ parentSpanId }) => !ids.has(parentSpanId ?? ''));
      expect(others).toEqual([]);
      expect(root).toMatchObject({ service: 'gateway', name: 'POST /crms/:crmId/provider/:providerRef/bookings' });
      const mailed = booking.find(({ name }) => name === 'send mail');
      expect(pathTo(mailed!, booking)).toEqual([
        'gateway: POST /crms/:crmId/provider/:providerRef/bookings',
        'gateway: scheduling.calendar.v1.BookingService/BookSlot',
        'calendar: scheduling.calendar.v1.BookingService/BookSlot',
        'calendar: publish scheduling.calendar.v1.participation-changed',
        'notification: process calendar-participation-changed',
        'notification: write mail',
        'notification: send mail',
      ]);
      const statements = booking
        .filter(({ attributes }) => attributes.some(({ key }) => key === 'db.query.summary'))
        .map((span) => pathTo(span, booking).slice(-2));
      expect(statements).toContainEqual([
        'calendar: scheduling.calendar.v1.BookingService/BookSlot',
        'calendar: SELECT call_once',
      ]);
      expect(statements).toContainEqual(['notification: write mail', 'notification: SELECT store_written_mail']);
    });
    // Names, addresses, references and texts of the requests.
    expect(JSON.stringify(collector.spans)).not.toMatch(
      /grace|hopper|lovelace|traced|salon|marienplatz|haircut|see you|@|%40/i,
    );
  });

  it('records nothing of a booking that its gateway does not sample, in no service', async () => {
    await using gateway = await startGateway({
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
    });
    const earlier = new Set(collector.spans.map(({ traceId }) => traceId));
    expect(await playDemo({ ...stack.info, gateway: gateway.url }, 'unrecorded', () => undefined)).toBeDefined();
    expect((await play('recorded')).mail).toBeDefined();
    // Whatever a service recorded of the first one arrives no later than the end of the second one.
    await eventually(() => {
      expect(traceOf('bookings', 'send mail', earlier)).not.toEqual([]);
      const later = [
        ...Map.groupBy(
          collector.spans.filter(({ traceId }) => !earlier.has(traceId)),
          ({ traceId }) => traceId,
        ).values(),
      ];
      expect(later.filter((spans) => !spans.some(({ service }) => service === 'gateway'))).toEqual([]);
      expect(later.filter((spans) => spans.some(({ name }) => name.endsWith('/bookings')))).toHaveLength(1);
    });
  });

  it('continues the trace of a client', async () => {
    const traceId = randomBytes(16).toString('hex');
    const parentSpanId = randomBytes(8).toString('hex');
    const headers = { 'X-SERVICE-CLIENT-ID': stack.info.apiKey, traceparent: `00-${traceId}-${parentSpanId}-01` };
    expect((await fetch(`${stack.info.gateway}/crms/demo/user/nobody%40demo`, { headers })).status).toBe(404);
    await eventually(() => {
      const spans = collector.spans.filter((span) => span.traceId === traceId);
      expect(spans).toContainEqual(expect.objectContaining({ service: 'gateway', parentSpanId }));
      expect(spans).toContainEqual(expect.objectContaining({ service: 'identity' }));
    });
  });

  it('rejects a wrong key, and a valid one on another CRM', async () => {
    const url = `${stack.info.gateway}/crms/demo/user/nobody%40demo`;
    expect((await fetch(url)).status).toBe(401);
    expect((await fetch(url, { headers: { 'X-SERVICE-CLIENT-ID': 'wrong' } })).status).toBe(401);
    const headers = { 'X-SERVICE-CLIENT-ID': stack.info.apiKey };
    expect((await fetch(url.replace('/demo/', '/other/'), { headers })).status).toBe(403);
    expect((await fetch(url, { headers })).status).toBe(404);
  });

  it('shows the remaining rate limit in every response', async () => {
    const headers = { 'X-SERVICE-CLIENT-ID': stack.info.apiKey };
    const response = await fetch(`${stack.info.gateway}/crms/demo/user/nobody%40demo`, { headers });
    expect(response.headers.get('ratelimit-policy')).toContain('6000');
    expect(response.headers.get('ratelimit')).not.toBeNull();
  });

  it('answers the command that the banner shows, every time', async () => {
    const line = `${firstRequest(stack.info)} -s -o /dev/null -w '%{http_code}'`;
    expect((await run('sh', ['-c', line])).stdout).toBe('201');
    expect((await run('sh', ['-c', line])).stdout).toBe('200');
  });

  it('responds to the commands of the README as the README says', async () => {
    const readme = await readFile(join(repositoryRoot, 'README.md'), 'utf8');
    const blocks = readBlocks(readme.slice(readme.indexOf('## Five minutes'), readme.indexOf('## Where things are')));
    const commands = blocks.filter(({ language }) => language === 'sh').flatMap(commandsOf);
    const script = commands.filter((command) => !command.startsWith('npm ')).join('\n');
    const here = script.replace('http://127.0.0.1:8080', stack.info.gateway).replace('.data', dataDir);
    const shown = blocks.filter(({ language }) => language !== 'sh').map(({ text }) => text);
    expect((await run('sh', ['-c', here])).stdout).toMatch(
      new RegExp(`^${RegExp.escape(shown.join('')).replaceAll('…', '.*')}$`),
    );
  });

  it('books again after services were killed', async () => {
    const { pids } = stack.info;
    const killed = { calendar: pids.calendar, notification: pids.notification };
    for (const pid of Object.values(killed)) process.kill(pid!, 'SIGKILL');
    await waitUntil(
      () => stack.info.pids.calendar !== killed.calendar && stack.info.pids.notification !== killed.notification,
      {
        what: 'the services to be back',
        timeoutMs: 30_000,
      },
    );
    const { mail } = await play('second');
    expect(mail?.to).toMatchObject([{ address: 'grace-second@example.com' }]);
  });

  it('can be managed with the admin command', async () => {
    expect(await admin('crm', 'create', 'acme', '--name', 'Acme', '--language', 'en', '--rate-limit', '100')).toBe(
      '✔ Created CRM acme. Create its first key: npm run admin -- key create acme\n',
    );
    await expect(admin('crm', 'create', 'NO', '--language', 'x')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^The settings of the CRM are invalid\.\n {2}crmId: must .*\n {2}language: must be .*\n$/,
      ) as string,
    });
    expect(await admin('crm', 'list')).toMatch(/acme +Acme +en +Europe\/Berlin[^]*demo +Demo/);
    const key = (await admin('key', 'create', 'acme', '--expires', '90d')).trim();
    const url = `${stack.info.gateway}/crms/acme/user/nobody%40acme`;
    const status = async (): Promise<number> => (await fetch(url, { headers: { 'X-SERVICE-CLIENT-ID': key } })).status;
    expect(await status()).toBe(404);
    const list = await admin('key', 'list', 'acme');
    expect(list).not.toContain(key);
    const prefix = /^(\S+) +active/m.exec(list)?.[1] ?? '';
    await admin('key', 'revoke', prefix);
    await waitUntil(async () => (await status()) === 401, { what: 'the key to be refused', timeoutMs: 5_000 });
    await expect(admin('key', 'list', 'nobody')).rejects.toMatchObject({ code: 1, stdout: '' });
  });

  it('sends a mail again', async () => {
    expect((await play('again')).mail).toBeDefined();
    const url = `${stack.info.gateway}/crms/demo/provider/salon-again%40demo/participations/booking-again%40demo/mails`;
    const headers = { 'X-SERVICE-CLIENT-ID': stack.info.apiKey };
    const mailId = await eventually(async () => {
      const mails = (await (await fetch(url, { headers })).json()) as { id: string }[];
      expect(mails).toMatchObject([{ template: 'booking-confirmed', state: 'SENT' }]);
      return mails[0]!.id;
    });
    expect((await fetch(`${url}/${mailId}/resend`, { method: 'POST', headers })).status).toBe(202);
  });

  it('erases a customer', async () => {
    const { mail } = await play('erased');
    expect(mail).toBeDefined();
    const url = `${stack.info.gateway}/crms/demo/provider/salon-erased%40demo/customers/grace-erased%40demo?ignoreFutureAppointments`;
    expect((await fetch(url, { method: 'DELETE', headers: { 'X-SERVICE-CLIENT-ID': stack.info.apiKey } })).status).toBe(
      204,
    );
    await eventually(async () => expect(await admin('erasures')).toMatch(/^demo .* complete +-$/m));
  });

  it('needs no RPC that a service refuses to another one', async () => {
    for (const service of services) {
      const metrics = await (await fetch(`${stack.info.operations[service]}/metrics`)).text();
      expect(
        sumSamples(metrics, 'rpc_client_duration_seconds_count', { rpc_status: 'PERMISSION_DENIED' }) ?? 0,
        service,
      ).toBe(0);
    }
  });

  it('serves operators, and refuses services what is not for them', async () => {
    const adminAs = (name: Service | 'admin') =>
      clients.use(createAdminClient(stack.info.admin.identity, { credentials: credentialsOf(name), ...longTimeout }));
    const removalsAs = (name: Service) =>
      clients.use(
        createClient(CustomerRemovalServiceService, 'calendar', stack.info.services.calendar, {
          credentials: credentialsOf(name),
          ...longTimeout,
        }),
      );
    const removal = { crmId: 'demo', customerId: randomUUID(), ignoreFutureAppointments: true };
    const refused = { category: 'forbidden', code: 'caller.forbidden' };
    expect((await adminAs('admin').listCrms({})).crms).toContainEqual(expect.objectContaining({ crmId: 'demo' }));
    for (const service of services)
      await expect(adminAs(service).createKey({ crmId: 'demo' }), service).rejects.toMatchObject(refused);
    expect(await removalsAs('customer').removeCustomer(removal)).toEqual({ removed: [] });
    await expect(removalsAs('gateway').removeCustomer(removal)).rejects.toMatchObject(refused);
  });

  it('serves operators on a separate port, and nothing to a certificate of an unknown name', async () => {
    const common = ['AuditService', 'DatabaseService', 'DeadLetterService', 'ConsumerService'];
    const forServices = {
      identity: methodsOf('IdentityService', 'PublicProviderService'),
      calendar: methodsOf(
        'TimeslotService',
        'AppointmentService',
        'ParticipationService',
        'PersonService',
        'DecisionService',
        'BookingPageService',
        'BookingService',
        'CalendarSubscriptionService',
        'InvitationService',
        'HoursService',
        'ProviderService',
        'BlockService',
        'SandboxClockService',
        'ReferenceService',
        'CustomerRemovalService',
        'CustomerCopyService',
      ),
      customer: [
        ...methodsOf('CustomerService'),
        'ErasureService/GetErasureAddress',
        'ErasureService/GetErasureNotice',
      ],
      notification: methodsOf('ParticipationMailService', 'SandboxMailService'),
      webhook: methodsOf('EventService', 'WebhookService'),
    };
    const forOperators = {
      identity: methodsOf('AdminService', 'AuditService', 'DatabaseService'),
      calendar: methodsOf(...common, 'MailLinkService', 'HoursOverviewService', 'ProviderErasureService'),
      customer: [...methodsOf(...common), 'ErasureService/ListErasures', 'ErasureService/ReplayErasures'],
      notification: methodsOf(...common, 'MailService'),
      webhook: methodsOf(...common, 'DeliveryStateService'),
    };
    const stranger = { credentials: credentialsOf('stranger'), ...longTimeout };
    for (const service of databaseServices) {
      expect(await findRefusals(service, stack.info.services[service], stranger), service).toEqual(
        forServices[service],
      );
      expect(await findRefusals(service, stack.info.admin[service], stranger), service).toEqual(forOperators[service]);
    }
  });

  it('rejects clients without a certificate', async () => {
    using client = createAdminClient(stack.info.admin.identity);
    await expect(client.listCrms({})).rejects.toMatchObject({ code: 'service.unavailable' });
    expect(await runAdmin({ SCHEDULING_DATA: dataDir }, 'crm', 'list')).toMatchObject({
      code: 1,
      output: expect.stringMatching(/does not answer/) as string,
    });
  });

  it('keeps working when all certificates are replaced by those of another authority', async () => {
    const expiries = () => Promise.all(services.map(readExpiry));
    const before = await expiries();
    await renewCertificates();
    // Each process reads its files every 10 s.
    const areReplaced = async () => (await expiries()).every((expiry, index) => expiry! > before[index]!);
    await waitUntil(areReplaced, { what: 'the new certificates', timeoutMs: 30_000, intervalMs: 1_000 });
    expect((await eventually(() => play('renewed'))).mail).toBeDefined();
  });
});

/** The certificate of this name. */
function credentialsOf(name: Service | 'admin' | 'stranger'): RpcCredentials {
  const [certificate = '', key = '', authorities = ''] = ['tls.crt', 'tls.key', 'ca.crt'].map((file) =>
    join(folder, 'certificates', name, file),
  );
  return clients.use(openCredentials({ files: { certificate, key, authorities }, logger: testLogger('end-to-end') }));
}

async function readExpiry(service: Service): Promise<number | undefined> {
  const metrics = await (await fetch(`${stack.info.operations[service]}/metrics`)).text();
  return sumSamples(metrics, 'scheduling_grpc_certificate_expiry_timestamp_seconds');
}

/** The trace that begins with a request to a path with this suffix and contains a span of this name. */
function traceOf(pathEnd: string, lastName: string, except = new Set<string>()): CollectedSpan[] {
  const spans = collector.spans.filter(({ traceId }) => !except.has(traceId));
  const last = new Set(spans.filter(({ name }) => name === lastName).map(({ traceId }) => traceId));
  const first = spans.find(({ name, traceId }) => name.endsWith(`/${pathEnd}`) && last.has(traceId));
  expect(first).toBeDefined();
  return spans.filter(({ traceId }) => traceId === first!.traceId);
}

/** The services and names of the spans from the first one of the trace to this one. */
function pathTo(span: CollectedSpan, trace: CollectedSpan[]): string[] {
  const parent = trace.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : pathTo(parent, trace)), `${span.service}: ${span.name}`];
}

/** Another replica of the gateway, which is not told about revoked keys: the user of NATS is the doctor's. */
async function startGateway(settings: Record<string, string>): Promise<{ url: string } & AsyncDisposable> {
  const httpPort = await freePort();
  const url = `http://127.0.0.1:${httpPort}`;
  const addresses = Object.fromEntries(
    databaseServices.map((name) => [`${name.toUpperCase()}_ADDRESS`, stack.info.services[name]]),
  );
  const certificate = Object.fromEntries(
    Object.entries(certificates).map(([name, file]) => [name, file.replace('{service}', 'gateway')]),
  );
  const given = {
    HTTP_PORT: String(httpPort),
    PUBLIC_URL: url,
    NATS_URL: stack.info.nats,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
  };
  return { url, ...(await startAppProcess('gateway', { ...given, ...addresses, ...certificate, ...settings })) };
}

async function seed(): Promise<Filled> {
  const { gateway, crmId, apiKey } = stack.info;
  return fillCalendar(createApiClient({ url: gateway, crmId, key: apiKey }), Temporal.PlainDate.from('2099-06-01'));
}

async function play(name: string) {
  const steps: DemoStep[] = [];
  const mail = await playDemo(stack.info, name, (step) => steps.push(step));
  return { steps, mail };
}

async function admin(...args: string[]): Promise<string> {
  const environment = { ...inherited(), SCHEDULING_DATA: dataDir, NO_COLOR: '1', ...certificates };
  return (await run(process.execPath, [join(repositoryRoot, 'apps/local/src/admin.ts'), ...args], { env: environment }))
    .stdout;
}
