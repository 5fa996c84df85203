import {
  AppointmentServiceService,
  BookingPageServiceService,
  BookingServiceService,
  BlockServiceService,
  CalendarSubscriptionServiceService,
  type CreateAppointmentRequest,
  type CreateParticipationRequest,
  CustomerCopyServiceService,
  CustomerRemovalServiceService,
  HoursOverviewServiceService,
  HoursServiceService,
  InvitationServiceService,
  type ListAppointmentsRequest,
  MailLinkServiceService,
  ParticipationServiceService,
  ParticipationState,
  PersonServiceService,
  ProviderErasureServiceService,
  ProviderServiceService,
  SandboxClockServiceService,
  TimeslotServiceService,
} from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import type { ParticipationChanged } from '@scheduling/contracts/events/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { createDatabase, type Database } from '@scheduling/postgres';
import { createClient, type RpcClient } from '@scheduling/rpc';
import {
  countDeadlocks,
  createMigratedDatabase,
  longTimeout,
  newNamedKey,
  patiently,
  startTestNats,
  testLogger,
} from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { readConfig } from '../src/config.ts';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import { createCalendarService } from '../src/service.ts';
import {
  type AppointmentJson,
  parsingBookings,
  type ParsingBookings,
  parsingParticipations,
  type ParsingParticipations,
  parsingTimeslots,
  type ParsingTimeslots,
} from './parsed-answers.ts';

export interface Calendar extends AsyncDisposable {
  providers: RpcClient<typeof ProviderServiceService>;
  providerErasures: RpcClient<typeof ProviderErasureServiceService>;
  timeslots: ParsingTimeslots;
  appointments: RpcClient<typeof AppointmentServiceService>;
  participations: ParsingParticipations;
  bookings: ParsingBookings;
  pages: RpcClient<typeof BookingPageServiceService>;
  persons: RpcClient<typeof PersonServiceService>;
  blocks: RpcClient<typeof BlockServiceService>;
  calendars: RpcClient<typeof CalendarSubscriptionServiceService>;
  invitations: RpcClient<typeof InvitationServiceService>;
  hours: RpcClient<typeof HoursServiceService>;
  removals: RpcClient<typeof CustomerRemovalServiceService>;
  copies: RpcClient<typeof CustomerCopyServiceService>;
  clocks: RpcClient<typeof SandboxClockServiceService>;
  mailLinks: RpcClient<typeof MailLinkServiceService>;
  hoursOverviews: RpcClient<typeof HoursOverviewServiceService>;
  /** The response of `/metrics`. */
  scrape(): Promise<string>;
}

export interface CalendarUnderTest extends Calendar {
  identity: RpcClient<typeof IdentityServiceService>;
  customers: RpcClient<typeof CustomerServiceService>;
  /** For inspecting what no RPC returns. */
  database: Database<CalendarSchema>;
  /** Another replica on the same database. Settings override those of the environment. */
  startReplica(settings?: Record<string, string>): Promise<Calendar>;
  /** Another replica whose clock is `offset` (`181 seconds`) ahead of the others. */
  startReplicaAt(offset: string, settings?: Record<string, string>): Promise<Calendar>;
  /**
   * The number of deadlocks in the database. Stops everything except the other replicas, which must have stopped
   * already.
   */
  countDeadlocks(): Promise<number>;
}

/** Provider p1 (Europe/Berlin) of CRM one, unless stated otherwise. */
export const owned = { crmId: 'one', providerReference: 'p1' };

/**
 * The service as it runs in production, on its own servers, with the identity and customer services that all files
 * share: it receives none of their events.
 */
export async function startCalendar(settings: Record<string, string> = {}): Promise<CalendarUnderTest> {
  await using starting = new AsyncDisposableStack();
  const nats = starting.use(await startTestNats());
  const calendar = starting.use(await startCalendarBeside(inject('neighbours'), nats.url('calendar'), settings));
  const started = starting.move();
  return { ...calendar, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** The same with identity and customer services owned by the caller, and their events. */
export async function startCalendarBeside(
  addresses: { identity: string; customer: string },
  natsUrl: string,
  settings: Record<string, string> = {},
): Promise<CalendarUnderTest> {
  await using starting = new AsyncDisposableStack();
  const logger = testLogger('calendar-test');
  const url = await createMigratedDatabase('calendar', migrateCalendarDatabase);
  const environment = {
    LISTEN_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    ADMIN_PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: url,
    NATS_URL: natsUrl,
    IDENTITY_ADDRESS: addresses.identity,
    CUSTOMER_ADDRESS: addresses.customer,
    LINK_KEYS: newNamedKey(),
    ...settings,
  };
  const startReplica = async (overrides: Record<string, string> = {}, databaseUrl = url): Promise<Calendar> => {
    await using replica = new AsyncDisposableStack();
    const config = { ...readConfig({ ...environment, ...overrides }), databaseUrl };
    const service = replica.use(await createCalendarService(config, logger));
    const address = `127.0.0.1:${service.grpcPort}`;
    const providers = replica.use(createClient(ProviderServiceService, 'calendar', address, longTimeout));
    const timeslots = replica.use(createClient(TimeslotServiceService, 'calendar', address, longTimeout));
    const appointments = replica.use(createClient(AppointmentServiceService, 'calendar', address, longTimeout));
    const participations = replica.use(createClient(ParticipationServiceService, 'calendar', address, longTimeout));
    const bookings = replica.use(createClient(BookingServiceService, 'calendar', address, longTimeout));
    const pages = replica.use(createClient(BookingPageServiceService, 'calendar', address, longTimeout));
    const persons = replica.use(createClient(PersonServiceService, 'calendar', address, longTimeout));
    const blocks = replica.use(createClient(BlockServiceService, 'calendar', address, longTimeout));
    const calendars = replica.use(createClient(CalendarSubscriptionServiceService, 'calendar', address, longTimeout));
    const invitations = replica.use(createClient(InvitationServiceService, 'calendar', address, longTimeout));
    const hours = replica.use(createClient(HoursServiceService, 'calendar', address, longTimeout));
    const removals = replica.use(createClient(CustomerRemovalServiceService, 'calendar', address, longTimeout));
    const copies = replica.use(createClient(CustomerCopyServiceService, 'calendar', address, longTimeout));
    const clocks = replica.use(createClient(SandboxClockServiceService, 'calendar', address, longTimeout));
    const mailLinks = replica.use(
      createClient(MailLinkServiceService, 'calendar', `127.0.0.1:${service.adminPort}`, longTimeout),
    );
    const providerErasures = replica.use(
      createClient(ProviderErasureServiceService, 'calendar', `127.0.0.1:${service.adminPort}`, longTimeout),
    );
    const hoursOverviews = replica.use(
      createClient(HoursOverviewServiceService, 'calendar', `127.0.0.1:${service.adminPort}`, longTimeout),
    );
    const scrape = async (): Promise<string> => (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text();
    const running = replica.move();
    return {
      providers,
      providerErasures,
      timeslots: parsingTimeslots(timeslots),
      appointments,
      participations: parsingParticipations(participations),
      bookings: parsingBookings(bookings),
      pages,
      persons,
      calendars,
      invitations,
      hours,
      blocks,
      removals,
      copies,
      clocks,
      mailLinks,
      hoursOverviews,
      scrape,
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    };
  };
  const calendar = starting.use(await startReplica());
  const identity = starting.use(createClient(IdentityServiceService, 'identity', addresses.identity, longTimeout));
  const customers = starting.use(createClient(CustomerServiceService, 'customer', addresses.customer, longTimeout));
  const database = starting.use(
    createDatabase<CalendarSchema>({ url, applicationName: 'test', logger, ...longTimeout }),
  );
  const startReplicaAt = (offset: string, overrides: Record<string, string> = {}): Promise<Calendar> => {
    const later = new URL(url);
    // A space would end the value.
    later.searchParams.set('options', `-c scheduling.clock_offset=${offset.replaceAll(' ', '\\ ')}`);
    return startReplica(overrides, later.href);
  };
  const started = starting.move();
  return {
    ...calendar,
    identity,
    customers,
    database,
    startReplica: (overrides) => startReplica(overrides),
    startReplicaAt,
    countDeadlocks: async () => {
      await started.disposeAsync();
      return countDeadlocks(url);
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** A reference that no other test uses, in any file. */
export function freshReference(kind: string): string {
  return `${kind}-${randomUUID()}@test`;
}

export async function createCustomer({ customers }: CalendarUnderTest, owner = owned): Promise<string> {
  const customerReference = freshReference('customer');
  const request = {
    ...owner,
    customerReference,
    userName: `Name of ${customerReference}`,
    email: 'person@example.com',
  };
  await patiently(() => customers.createCustomer(request));
  return customerReference;
}

export function newAppointment(overrides: Partial<CreateAppointmentRequest> = {}): CreateAppointmentRequest {
  return {
    ...owned,
    reference: freshReference('appointment'),
    start: '2099-06-01T10:00',
    end: '2099-06-01T11:00',
    capacity: 1,
    acceptBookings: false,
    resourceReference: 'resource@test',
    productReference: 'product@test',
    participations: [],
    ...overrides,
  };
}

/** Creates an appointment of provider p1 and returns its reference. */
export async function createAppointment(
  calendar: Calendar,
  overrides: Partial<CreateAppointmentRequest> = {},
): Promise<string> {
  const request = newAppointment(overrides);
  await patiently(() => calendar.appointments.createAppointment(request));
  return request.reference;
}

/** The appointments of an answer. */
export function readAppointments(json: Buffer): AppointmentJson[] {
  return JSON.parse(`[${json.toString()}]`) as AppointmentJson[];
}

/** All appointments that a list contains. */
export async function listAppointments(
  { appointments }: Calendar,
  query: ListAppointmentsRequest,
): Promise<AppointmentJson[]> {
  const parts = await Array.fromAsync(appointments.listAppointments(query));
  return parts.flatMap(({ json }) => readAppointments(json));
}

export function newParticipation(
  required: Pick<CreateParticipationRequest, 'appointmentReference' | 'customerReference'>,
  overrides: Partial<CreateParticipationRequest> = {},
): CreateParticipationRequest {
  return {
    ...owned,
    reference: freshReference('participation'),
    state: ParticipationState.BOOKED,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: true,
    ...required,
    ...overrides,
  };
}

/**
 * The statements that wait for the lock of another transaction. What shares a transaction does not count: it gives up
 * after 100 ms, and is made again apart. Nor does the relay, which records what it has sent, and may have to wait as
 * well. Consumers of events can wait, too.
 *
 * @param statement only those that are like this
 */
export async function countWaiting({ database }: CalendarUnderTest, statement = '%'): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE ${statement} AND query NOT LIKE ALL (ARRAY['%"outbox"%', '%jsonb_array_elements%'])`.execute(
    database.kysely,
  );
  return rows[0]!.count;
}

/**
 * Waits until all have settled, so that none is still running when the test has failed; then rejects with the first
 * rejection.
 */
export async function allEnded<T>(calls: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(calls);
  return Promise.all(calls);
}

/** The domain error that a call is rejected with, without its stack. */
export async function refusal(
  call: Promise<unknown>,
): Promise<Pick<DomainError, 'category' | 'code' | 'message' | 'errors' | 'reason'>> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const { category, code, message, errors, reason } = error;
    return { category, code, message, errors, reason };
  }
  throw new Error('the call was not refused');
}

/** An event in the outbox, and whether its subject is the one that notification does not receive. */
export interface RecordedChange extends ParticipationChanged {
  silent: boolean;
}

/** The events in the outbox about one participation, oldest first. */
export async function eventsOf(
  { database }: CalendarUnderTest,
  participationReference: string,
): Promise<RecordedChange[]> {
  const { id } = await database.kysely
    .selectFrom('participation')
    .select('id')
    .where('reference', '=', participationReference)
    .executeTakeFirstOrThrow();
  const rows = await database.kysely
    .selectFrom('outbox')
    .select(['subject', 'data'])
    .where('subject', 'in', [events.participationChanged.subject, events.participationChangedSilently.subject])
    .orderBy('id')
    .execute();
  return rows
    .map(({ subject, data }) => ({
      ...events.participationChanged.fromJson(data!),
      silent: subject === events.participationChangedSilently.subject,
    }))
    .filter((event) => event.participationId === id);
}

export async function seatsOf(
  { database }: CalendarUnderTest,
  appointmentReference: string,
  crmId = owned.crmId,
): Promise<number> {
  const { taken } = await database.kysely
    .selectFrom('appointment')
    .select('taken')
    .where('crmId', '=', crmId)
    .where('reference', '=', appointmentReference)
    .executeTakeFirstOrThrow();
  return taken;
}
