import {
  AppointmentServiceService,
  BookingPageServiceService,
  BookingServiceService,
  type BookSlotRequest,
  CalendarSubscriptionServiceService,
  InvitationServiceService,
  ParticipationServiceService,
  ParticipationState,
  SandboxClockServiceService,
  TimeslotServiceService,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { AdminServiceService, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { createClient, type Definition, type RpcClient } from '@scheduling/rpc';
import {
  longTimeout,
  patiently,
  type ServiceProcess,
  startServiceProcesses,
  startTestNats,
  testLogger,
} from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { readConfig } from '../src/config.ts';
import { createPageService } from '../src/service.ts';
import { expect } from 'vitest';

export interface PageUnderTest extends AsyncDisposable {
  /** Where persons reach the pages: through a proxy that removes the path. */
  pageUrl: string;
  port: number;
  services: Record<'identity' | 'calendar' | 'customer', ServiceProcess>;
  admin: RpcClient<AdminServiceService>;
  identity: RpcClient<IdentityServiceService>;
  appointments: RpcClient<AppointmentServiceService>;
  bookings: RpcClient<BookingServiceService>;
  bookingPages: RpcClient<BookingPageServiceService>;
  participations: RpcClient<ParticipationServiceService>;
  calendars: RpcClient<CalendarSubscriptionServiceService>;
  clocks: RpcClient<SandboxClockServiceService>;
  invitations: RpcClient<InvitationServiceService>;
  timeslots: RpcClient<TimeslotServiceService>;
  customers: RpcClient<CustomerServiceService>;
  /** Opens a page as a browser does, without following redirections. */
  open(path: string, options?: OpenOptions): Promise<Answer>;
}

export interface OpenOptions {
  method?: string;
  headers?: Record<string, string> | undefined;
  /** Of a form, which is posted. */
  form?: Record<string, string>;
  /** Instead of a form. */
  body?: string | undefined;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: string;
  /** The first heading. */
  heading: string | undefined;
  /** Where a redirection leads, as page sees it. */
  location: string | undefined;
}

/** The path that the proxy removes. */
export const basePath = '/base';
const pageUrl = `https://book.example${basePath}`;

/** Page in front of real services, with the provider p1 (Europe/Berlin) of a sandbox. */
export async function startPage(settings: Record<string, string> = {}): Promise<PageUnderTest> {
  await using starting = new AsyncDisposableStack();
  const nats = starting.use(await startTestNats());
  const services = starting.use(await startServiceProcesses(['identity', 'calendar', 'customer'], nats.url));
  const { identity, calendar, customer } = services;
  const client = <D extends Definition>(definition: D, service: string, address: string): RpcClient<D> =>
    starting.use(createClient(definition, service, address, longTimeout));
  const clients = {
    admin: client(AdminServiceService, 'identity', identity.adminAddress),
    identity: client(IdentityServiceService, 'identity', identity.address),
    appointments: client(AppointmentServiceService, 'calendar', calendar.address),
    bookings: client(BookingServiceService, 'calendar', calendar.address),
    bookingPages: client(BookingPageServiceService, 'calendar', calendar.address),
    participations: client(ParticipationServiceService, 'calendar', calendar.address),
    calendars: client(CalendarSubscriptionServiceService, 'calendar', calendar.address),
    clocks: client(SandboxClockServiceService, 'calendar', calendar.address),
    invitations: client(InvitationServiceService, 'calendar', calendar.address),
    timeslots: client(TimeslotServiceService, 'calendar', calendar.address),
    customers: client(CustomerServiceService, 'customer', customer.address),
  };
  await createCrm(clients);
  const environment = {
    LISTEN_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    METRICS_PORT: '0',
    IDENTITY_ADDRESS: identity.address,
    CALENDAR_ADDRESS: calendar.address,
    PAGE_URL: pageUrl,
    TRUSTED_PROXIES: '127.0.0.1',
    ...settings,
  };
  const page = starting.use(await createPageService(readConfig(environment), { logger: testLogger('page') }));
  const started = starting.move();
  return {
    pageUrl,
    port: page.port,
    services,
    ...clients,
    open: (path, options) => open(`http://127.0.0.1:${page.port}${path}`, options),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Each test has an address of its own, because an address may open only so many pages. */
export function freshAddress(): string {
  const [, ...bytes] = [...randomUUID().replaceAll('-', '').matchAll(/../g)].slice(0, 4);
  return ['10', ...bytes.map(([byte]) => Number.parseInt(byte, 16))].join('.');
}

async function open(url: string, { method, headers, form, body: given }: OpenOptions = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: method ?? (form === undefined ? 'GET' : 'POST'),
    redirect: 'manual',
    headers: { 'x-forwarded-for': freshAddress(), 'accept-language': 'en', ...headers },
    body: form === undefined ? (given ?? null) : new URLSearchParams(form),
  });
  const body = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body,
    heading: /<h1>(.*?)<\/h1>/.exec(body)?.[1],
    location: response.headers.get('location')?.replace(basePath, ''),
  };
}

const crmId = 'sandbox';
export const owner = { crmId, providerReference: 'p1' };

async function createCrm({ admin, identity }: Pick<PageUnderTest, 'admin' | 'identity'>): Promise<void> {
  await admin.createCrm({
    crmId,
    name: 'Studio CRM',
    sandbox: true,
    colour: '#7a1f5c',
    imprint: 'Studio CRM Ltd\nLondon',
    privacyUrl: 'https://crm.example/privacy',
  });
  await identity.createUser({ crmId, reference: 'owner', email: 'o@crm.example', username: 'o', lastName: 'Owner' });
  await identity.createAccount({ crmId, account: { ...account, branch: 'misc' } });
  await createProvider({ identity }, owner.providerReference);
}

const account = { ownerReference: 'owner', accountReference: 'account' };

/** A provider of the sandbox. */
export async function createProvider(
  { identity }: Pick<PageUnderTest, 'identity'>,
  reference: string,
  timeZone = 'Europe/Berlin',
): Promise<void> {
  await identity.createProvider({
    crmId,
    reference,
    ...account,
    name: 'Praxis <Blum>',
    email: 'hello@blum.example',
    phone: '+49 30 1234567',
    impressum: 'Praxis Blum\nBerlin',
    timeZone,
  });
}

/** Sets the clock of the sandbox. */
export async function setClock({ clocks }: PageUnderTest, now: string): Promise<void> {
  await clocks.setSandboxClock({ crmId, now: new Date(now) });
}

export interface BookingUnderTest {
  reference: string;
  timeslotReference: string;
  appointmentReference: string;
  /** The path of its page. */
  path: string;
}

interface BookingOptions {
  state?: ParticipationState;
  /** Of the day of the timeslot, which is open from 10:00 to 12:00; the booking is at 10:00. */
  date?: string;
  customer?: { userName?: string; email?: string; language?: string };
}

/** Books the first half hour of a timeslot of its own. */
export async function book(
  page: PageUnderTest,
  { state = ParticipationState.BOOKED, date = '2031-06-02', customer = {} }: BookingOptions = {},
): Promise<BookingUnderTest> {
  const [timeslotReference, reference, customerReference] = ['timeslot', 'booking', 'customer'].map(
    (kind) => `${kind}-${randomUUID()}`,
  ) as [string, string, string];
  const timeslot = {
    reference: timeslotReference,
    resourceReference: `resource-${timeslotReference}`,
    start: `${date}T10:00`,
    end: `${date}T12:00`,
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
    address: {
      kind: { $case: 'address' as const, value: { street: 'Lange Straße', number: '1', zip: '10115', city: 'Berlin' } },
    },
  };
  await patiently(() => page.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] }));
  const person = { userName: 'Ada Lovelace', email: 'ada@example.com', ...customer };
  await patiently(() => page.customers.createCustomer({ ...owner, customerReference, ...person }));
  const request: BookSlotRequest = {
    ...owner,
    reference,
    place: {
      $case: 'timeslot',
      value: {
        timeslotReference,
        start: `${date}T10:00`,
        productReference: 'massage',
        description: 'Massage & more',
        price: { value: 45, currency: 'EUR' },
      },
    },
    state,
    ...(state !== ParticipationState.RESERVED && {
      customer: { $case: 'customerReference', value: customerReference },
    }),
    ignoreNotice: true,
    sendMails: false,
  };
  const { participationJson } = await patiently(() => page.bookings.bookSlot(request));
  const { appointmentReference } = JSON.parse(participationJson.toString()) as { appointmentReference: string };
  const { token } = await page.participations.getParticipationLink({ ...owner, participationReference: reference });
  return { reference, timeslotReference, appointmentReference, path: `/booking/${token}` };
}

export async function setRules(page: PageUnderTest, changeNotice: number): Promise<void> {
  await page.bookings.updateBookingRules({ ...owner, noHorizon: false, defaultSelfService: true, changeNotice });
}

/** As the CRM does it. */
export async function cancelByCrm(page: PageUnderTest, participationReference: string): Promise<void> {
  const state = ParticipationState.CANCELED;
  const request = { ...owner, participationReference, state, ignoreCapacity: false, sendMails: false };
  await page.participations.updateParticipation(request);
}

/** Again while calendar has too many calls of this CRM, as the page says. */
export async function whenServed(request: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await request();
    if (answer.status !== 503) return answer;
  }
}

/**
 * The first of two equal answers, and how long the faster one took, in ms: whatever else the machine does only adds to
 * the time that a page waits.
 */
export async function timeTwice(request: () => Promise<Answer>): Promise<Answer & { ms: number }> {
  const startedMs = performance.now();
  const first = await request();
  const betweenMs = performance.now();
  const second = await request();
  expect(second.status).toBe(first.status);
  return { ...first, ms: Math.min(betweenMs - startedMs, performance.now() - betweenMs) };
}
