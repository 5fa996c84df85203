import {
  AppointmentServiceService,
  BookingPageServiceService,
  BookingServiceService,
  DecisionServiceService,
  ParticipationServiceService,
  TimeslotServiceService,
} from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { AdminServiceService, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import {
  MailServiceService,
  ParticipationMailServiceService,
  SandboxMailServiceService,
} from '@scheduling/contracts/notification/v1';
import { DeadLetterServiceService } from '@scheduling/contracts/operations/v1';
import {
  connectBroker,
  consumerName,
  type EventDefinition,
  eventHeaders,
  type NatsUser,
  streamName,
} from '@scheduling/events';
import { createDatabase, type Database } from '@scheduling/postgres';
import { type ClientOf, createClient } from '@scheduling/rpc';
import {
  createMigratedDatabase,
  eventually,
  longTimeout,
  type ServiceName,
  type ServiceProcess,
  startServiceProcesses,
  startTestNats,
  startTestSmtp,
  testLogger,
  type TestNats,
  type TestSmtp,
} from '@scheduling/testing';
import { expect } from 'vitest';
import { readConfig } from '../src/config.ts';
import { migrateNotificationDatabase } from '../src/db/migrate.ts';
import type { NotificationSchema } from '../src/db/schema.ts';
import { createNotificationService, type Overrides } from '../src/service.ts';

export const crmId = 'crm';
export const providerReference = 'studio@crm';

/**
 * What notification works with, and clients of it: NATS, a mail server, a database, the other services as separate
 * processes, and a CRM with a provider.
 */
export interface Surroundings extends AsyncDisposable {
  nats: TestNats;
  smtp: TestSmtp;
  database: Database<NotificationSchema>;
  services: Record<ServiceName, ServiceProcess>;
  /** The environment variables with which notification works with them. */
  environment: Record<string, string>;
  admin: ClientOf<typeof AdminServiceService>;
  identity: ClientOf<typeof IdentityServiceService>;
  customers: ClientOf<typeof CustomerServiceService>;
  timeslots: ClientOf<typeof TimeslotServiceService>;
  appointments: ClientOf<typeof AppointmentServiceService>;
  participations: ClientOf<typeof ParticipationServiceService>;
  bookings: ClientOf<typeof BookingServiceService>;
  decisions: ClientOf<typeof DecisionServiceService>;
  pages: ClientOf<typeof BookingPageServiceService>;
}

export interface NotificationUnderTest extends Surroundings {
  mails: ClientOf<typeof MailServiceService>;
  participationMails: ClientOf<typeof ParticipationMailServiceService>;
  sandboxMails: ClientOf<typeof SandboxMailServiceService>;
  deadLetters: ClientOf<typeof DeadLetterServiceService>;
}

/** The notification service in this process, and its surroundings. */
export async function startNotification(overrides: Overrides = {}): Promise<NotificationUnderTest> {
  await using starting = new AsyncDisposableStack();
  const surroundings = starting.use(await startSurroundings());
  const notification = await createNotificationService(
    readConfig(surroundings.environment),
    testLogger('notification'),
    overrides,
  );
  const { grpcPort, adminPort } = starting.use(notification);
  const [address, operatorsAddress] = [`127.0.0.1:${grpcPort}`, `127.0.0.1:${adminPort}`];
  const stack = {
    ...surroundings,
    participationMails: starting.use(
      createClient(ParticipationMailServiceService, 'notification', address, longTimeout),
    ),
    sandboxMails: starting.use(createClient(SandboxMailServiceService, 'notification', address, longTimeout)),
    mails: starting.use(createClient(MailServiceService, 'notification', operatorsAddress, longTimeout)),
    deadLetters: starting.use(createClient(DeadLetterServiceService, 'notification', operatorsAddress, longTimeout)),
  };
  const started = starting.move();
  return { ...stack, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Notification itself is started by the caller, as often as wanted. */
export async function startSurroundings(): Promise<Surroundings> {
  await using starting = new AsyncDisposableStack();
  const [nats, smtp] = await Promise.all([startTestNats(), startTestSmtp()]);
  starting.use(nats);
  starting.use(smtp);
  const services = starting.use(await startServiceProcesses(['identity', 'customer', 'calendar'], nats.url));
  const { identity, customer, calendar, addresses } = services;
  const databaseUrl = await createMigratedDatabase('notification', migrateNotificationDatabase);
  const surroundings = {
    nats,
    smtp,
    services,
    environment: {
      LISTEN_HOST: '127.0.0.1',
      GRPC_PORT: '0',
      ADMIN_PORT: '0',
      METRICS_PORT: '0',
      DATABASE_URL: databaseUrl,
      NATS_URL: nats.url('notification'),
      ...addresses,
      SMTP_URL: smtp.url,
      PUBLIC_URL: 'https://booking.example',
      PAGE_URL: 'https://page.example/',
      // Many tests write to the same person.
      MAILS_PER_HOUR_AND_RECIPIENT: '0',
    },
    database: starting.use(
      createDatabase<NotificationSchema>({
        url: databaseUrl,
        applicationName: 'test',
        logger: testLogger('notification'),
        ...longTimeout,
      }),
    ),
    admin: starting.use(createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout)),
    identity: starting.use(createClient(IdentityServiceService, 'identity', identity.address, longTimeout)),
    customers: starting.use(createClient(CustomerServiceService, 'customer', customer.address, longTimeout)),
    timeslots: starting.use(createClient(TimeslotServiceService, 'calendar', calendar.address, longTimeout)),
    appointments: starting.use(createClient(AppointmentServiceService, 'calendar', calendar.address, longTimeout)),
    participations: starting.use(createClient(ParticipationServiceService, 'calendar', calendar.address, longTimeout)),
    decisions: starting.use(createClient(DecisionServiceService, 'calendar', calendar.address, longTimeout)),
    pages: starting.use(createClient(BookingPageServiceService, 'calendar', calendar.address, longTimeout)),
    bookings: starting.use(createClient(BookingServiceService, 'calendar', calendar.address, longTimeout)),
  };
  await setUpProvider(surroundings, crmId);
  const started = starting.move();
  return { ...surroundings, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** A CRM with a provider; the references are the same in each. */
export async function setUpProvider(
  { admin, identity }: Pick<Surroundings, 'admin' | 'identity'>,
  id: string,
  { sandbox = false, hasAddress = true } = {},
): Promise<void> {
  await admin.createCrm({
    crmId: id,
    name: 'Studio',
    senderName: 'Studio',
    senderAddress: 'hello@studio.example',
    sandbox,
  });
  const [email, username] = id === crmId ? ['owner@studio.example', 'owner'] : [`owner@${id}.example`, `owner-${id}`];
  await identity.createUser({ crmId: id, reference: 'owner@crm', email, username, lastName: 'Owner' });
  await identity.createAccount({
    crmId: id,
    account: { ownerReference: 'owner@crm', accountReference: 'account@crm', branch: 'misc' },
  });
  await identity.createProvider({
    crmId: id,
    reference: providerReference,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Yoga & Co',
    email: hasAddress ? 'desk@yoga.example' : undefined,
    phone: '+49 30 1',
    impressum: 'Yoga & Co GmbH\nBerlin',
  });
}

/** Publishes an event as its service does, as one that was published before. Returns its number in the stream. */
export async function publishEvent<Data>(
  { nats }: Pick<Surroundings, 'nats'>,
  eventId: string,
  definition: EventDefinition<Data>,
  payload: Uint8Array,
): Promise<number> {
  const service = definition.subject.split('.')[1] as NatsUser;
  const headers = eventHeaders({
    id: eventId,
    service,
    type: definition.type,
    time: new Date(),
    requestId: 'repeated',
    repeated: true,
  });
  await using broker = connectBroker({ url: nats.url(service), name: service, logger: testLogger(service) });
  const { client } = await broker.jetStream(AbortSignal.timeout(5_000));
  const { seq: sequence } = await client.publish(definition.subject, payload, { headers });
  return sequence;
}

/** Resolves when notification has processed the event with this number, and the earlier ones of its kind. */
export async function processed<Data>(
  { nats }: Pick<Surroundings, 'nats'>,
  definition: EventDefinition<Data>,
  sequence: number,
): Promise<void> {
  await using broker = connectBroker({ url: nats.url('test'), name: 'test', logger: testLogger('test') });
  const { manager } = await broker.jetStream(AbortSignal.timeout(5_000));
  await eventually(async () => {
    const { ack_floor: acknowledged } = await manager.consumers.info(
      streamName,
      consumerName('notification', definition),
    );
    expect(acknowledged.stream_seq).toBeGreaterThanOrEqual(sequence);
  });
}
