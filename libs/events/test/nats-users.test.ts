import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, errors, type NatsConnection } from '@nats-io/transport-node';
import { databaseServices } from '@scheduling/runtime';
import { eventually, startTestNats, testLogger, type TestNats } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectionOptions } from '../src/connection-options.ts';
import {
  connectBroker,
  consumedEvents,
  consumerName,
  events,
  inspectNats,
  natsUsers,
  type NatsUser,
  readPublished,
  providerReplayConsumer,
  replayConsumer,
  userReplayConsumer,
} from '../src/index.ts';

const logger = testLogger('nats-users-test');
const publishers = ['identity', 'calendar', 'customer', 'notification'] as const;
const resources = new AsyncDisposableStack();
let nats: TestNats;

beforeAll(async () => {
  nats = resources.use(await startTestNats());
  await using broker = connectBroker({ url: nats.url('identity'), name: 'identity', logger });
  await broker.jetStream(AbortSignal.timeout(10_000));
});
afterAll(() => resources.disposeAsync());

/** A client with the user of a service. */
async function openConnection(user: NatsUser | 'test'): Promise<NatsConnection> {
  const connection = await connect({ ...connectionOptions({ url: nats.url(user) }, user), reconnect: false });
  resources.defer(() => connection.close());
  return connection;
}

/** What NATS denies a client while it does something, as `publish <subject>` and `subscription <subject>`. */
async function denialsOf(user: NatsUser, act: (connection: NatsConnection) => void): Promise<string[]> {
  const connection = await openConnection(user);
  const denials: string[] = [];
  const watch = async (): Promise<void> => {
    for await (const status of connection.status()) {
      if (status.type === 'error' && status.error instanceof errors.PermissionViolationError)
        denials.push(`${status.error.operation} ${status.error.subject}`);
    }
  };
  void watch();
  act(connection);
  // Nobody may do this, and NATS responds in order.
  connection.publish('the.end');
  await eventually(() => expect(denials).toContain('publish the.end'));
  return denials.filter((denial) => denial !== 'publish the.end');
}

const allSubjects = Object.values(events).map(({ subject }) => subject);

describe.each(natsUsers)('the NATS user %s', (user) => {
  it('may publish the events of its own service, and no others', async () => {
    const denials = await denialsOf(user, (connection) =>
      allSubjects.forEach((subject) => connection.publish(subject)),
    );
    const others = allSubjects.filter((subject) => subject.split('.')[1] !== user);
    expect(denials).toEqual(others.map((subject) => `publish ${subject}`));
  });

  it('may listen to its own inbox, and to no inbox of others', async () => {
    const inboxes = natsUsers.map((each) => `_INBOX.${each}.>`);
    const denials = await denialsOf(user, (connection) =>
      ['>', '_INBOX.>', ...inboxes].forEach((subject) => connection.subscribe(subject)),
    );
    expect(denials).toEqual(
      ['>', '_INBOX.>', ...inboxes.filter((inbox) => inbox !== `_INBOX.${user}.>`)].map(
        (subject) => `subscription ${subject}`,
      ),
    );
  });

  it('may listen to no events, unless it is the gateway, which hears what it evicts from its cache', async () => {
    const heard: string[] = user === 'gateway' ? [events.apiKeyRevoked.subject, events.crmChanged.subject] : [];
    const denials = await denialsOf(user, (connection) =>
      ['scheduling.>', ...allSubjects].forEach((subject) => connection.subscribe(subject)),
    );
    expect(denials).toEqual(
      ['scheduling.>', ...allSubjects.filter((subject) => !heard.includes(subject))].map(
        (subject) => `subscription ${subject}`,
      ),
    );
  });

  it('may wake only processes of its own service', async () => {
    const topics = publishers.map((service) => `scheduling-nudge.${service}`);
    const denials = await denialsOf(user, (connection) => topics.forEach((subject) => connection.publish(subject)));
    expect(denials).toEqual(
      topics.filter((topic) => topic !== `scheduling-nudge.${user}`).map((topic) => `publish ${topic}`),
    );
  });

  it('may neither delete nor empty the stream, nor remove an event from it', async () => {
    const manager = await jetstreamManager(await openConnection(user), { checkAPI: false, timeout: 1_000 });
    await expect(manager.streams.delete('scheduling')).rejects.toThrow(/Permissions Violation/i);
    await expect(manager.streams.purge('scheduling')).rejects.toThrow(/Permissions Violation/i);
    await expect(manager.streams.deleteMessage('scheduling', 1)).rejects.toThrow(/Permissions Violation/i);
  });
});

describe.each(publishers)('the NATS user %s', (service) => {
  it('may do with its own consumers what the service does, and nothing with those of others', async () => {
    const connection = await openConnection(service);
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 2_000 });
    const client = jetstream(connection, { timeout: 2_000 });
    const administrator = await jetstreamManager(await openConnection('test'), { checkAPI: false });
    for (const owner of databaseServices) {
      for (const definition of consumedEvents(owner)) {
        const settings = {
          durable_name: consumerName(owner, definition),
          filter_subject: definition.subject,
          ack_policy: AckPolicy.Explicit,
        };
        const name = settings.durable_name;
        if (owner === service) {
          await manager.consumers.add('scheduling', settings);
          await (await client.consumers.get('scheduling', name)).next({ expires: 1_000 });
          await manager.consumers.delete('scheduling', name);
        } else {
          await administrator.consumers.add('scheduling', settings);
          await expect(manager.consumers.add('scheduling', settings)).rejects.toThrow(/Permissions Violation/i);
          await expect(manager.consumers.info('scheduling', name)).rejects.toThrow(/Permissions Violation/i);
          await expect(manager.consumers.delete('scheduling', name)).rejects.toThrow(/Permissions Violation/i);
          const denials = await denialsOf(service, (each) => each.publish(`$JS.ACK.scheduling.${name}.1.1.1.1.0`));
          expect(denials).toEqual([`publish $JS.ACK.scheduling.${name}.1.1.1.1.0`]);
          await administrator.consumers.delete('scheduling', name);
        }
      }
    }
  });

  it.skipIf(service === 'identity')('may not change the stream', async () => {
    const manager = await jetstreamManager(await openConnection(service), { checkAPI: false, timeout: 1_000 });
    await expect(manager.streams.update('scheduling', { max_age: 1 })).rejects.toThrow(/Permissions Violation/i);
  });
});

it('a consumer delivers no other subject than the one that the permissions name', async () => {
  const connection = await openConnection('calendar');
  const name = consumerName('calendar', events.providerChanged);
  const config = {
    durable_name: name,
    filter_subject: events.participationChanged.subject,
    ack_policy: AckPolicy.Explicit,
  };
  const request = JSON.stringify({ stream_name: 'scheduling', config, action: 'create' });
  const answer = await connection.request(
    `$JS.API.CONSUMER.CREATE.scheduling.${name}.${events.providerChanged.subject}`,
    request,
  );
  expect(answer.json()).toMatchObject({ error: { code: 400 } });
});

it('the gateway may not read the stream, and create no consumer', async () => {
  const manager = await jetstreamManager(await openConnection('gateway'), { checkAPI: false, timeout: 1_000 });
  await expect(manager.streams.getMessage('scheduling', { seq: 1 })).rejects.toThrow(/Permissions Violation/i);
  await expect(manager.consumers.add('scheduling', { filter_subject: events.customerChanged.subject })).rejects.toThrow(
    /Permissions Violation/i,
  );
});

it('customer may read the erasures that it requested again', async () => {
  await using broker = connectBroker({ url: nats.url('customer'), name: 'customer', logger });
  const { client, manager } = await broker.jetStream(AbortSignal.timeout(5_000));
  await manager.streams.info('scheduling');
  const requested = { crmId: 'crm', customerId: 'c', erasureId: 'e', notify: false, byAddress: false };
  const since = new Date(Date.now() - 60_000);
  await client.publish(events.customerErasureRequested.subject, events.customerErasureRequested.encode(requested));
  const read = async () => (await readPublished(broker, replayConsumer, events.customerErasureRequested, since)).events;
  expect(await read()).toContainEqual(expect.objectContaining(requested));
  // The consumer of a process that was killed may still exist.
  await manager.consumers.add('scheduling', {
    name: replayConsumer,
    filter_subject: events.customerErasureRequested.subject,
    ack_policy: AckPolicy.None,
  });
  expect(await read()).toContainEqual(expect.objectContaining(requested));
});

it('identity may read the deletions of users and providers that it published again', async () => {
  await using broker = connectBroker({ url: nats.url('identity'), name: 'identity', logger });
  const { client } = await broker.jetStream(AbortSignal.timeout(5_000));
  const since = new Date(Date.now() - 60_000);
  const user = { crmId: 'crm', userId: 'u' };
  await client.publish(events.userDeleted.subject, events.userDeleted.encode(user));
  const users = await readPublished(broker, userReplayConsumer, events.userDeleted, since);
  expect(users.events).toContainEqual(expect.objectContaining(user));
  const provider = { crmId: 'crm', providerId: 'p' };
  await client.publish(events.providerDeleted.subject, events.providerDeleted.encode(provider));
  const providers = await readPublished(broker, providerReplayConsumer, events.providerDeleted, since);
  expect(providers.events).toContainEqual(expect.objectContaining(provider));
});

it('the doctor may read everything that it reports', async () => {
  expect(await inspectNats({ url: nats.url('doctor') })).toMatchObject({
    requiresUser: true,
    stream: { clustered: false },
  });
});

it('a client without a user cannot connect', async () => {
  const url = nats.url('test').replace(/\/\/.*@/, '//');
  await expect(connect({ servers: url, reconnect: false })).rejects.toThrow(errors.AuthorizationError);
});
