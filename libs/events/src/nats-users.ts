import { type DatabaseService, databaseServices } from '@scheduling/runtime';
import { consumedEvents, consumerName, events, subjectsOf } from './events.ts';

/**
 * Everyone who connects to NATS, under the name of their user: the services, and the doctor, with which operators
 * inspect the stream.
 */
export const natsUsers = ['gateway', ...databaseServices, 'doctor'] as const;
export type NatsUser = (typeof natsUsers)[number];

/** What a user may publish to and subscribe to, as patterns of subjects; everything else is denied. */
export interface NatsPermissions {
  publish: string[];
  subscribe: string[];
}

/** A consumer of the stream, and the subject whose events it delivers. */
interface StreamConsumer {
  name: string;
  subject: string;
}

/** The one stream of all events. */
export const streamName = 'scheduling';
/**
 * The only service that may change the stream: whoever may, could let the stream rewrite the subjects of its events.
 */
export const streamKeeper: NatsUser = 'identity';
/** With these consumers, services read their own events again after a restore. */
export const replayConsumer = 'customer-replay';
export const userReplayConsumer = 'identity-replay';
export const providerReplayConsumer = 'identity-provider-replay';
export const revocationReplayConsumer = 'identity-revocation-replay';

/** The events that the gateway hears while it is connected. */
const heardByGateway = [events.apiKeyRevoked, events.crmChanged];

/** The subjects on which NATS answers a client's requests: nobody else may listen there. */
export function inboxPrefix(user: string): string {
  return `_INBOX.${user}`;
}

/** The subject on which the processes of a service wake each other. Not among the stream's subjects. */
export function nudgeSubject(service: string): string {
  return `scheduling-nudge.${service}`;
}

/** What the code of each user needs, and no more. */
export function permissionsOf(user: NatsUser): NatsPermissions {
  const inbox = `${inboxPrefix(user)}.>`;
  switch (user) {
    case 'gateway':
      return { publish: [], subscribe: [inbox, ...heardByGateway.map(({ subject }) => subject)] };
    case 'doctor':
      return { publish: readingStream, subscribe: [inbox] };
    default:
      return {
        publish: [
          subjectsOf(user),
          nudgeSubject(user),
          ...readingStream,
          `$JS.API.STREAM.CREATE.${streamName}`,
          ...(user === streamKeeper ? [`$JS.API.STREAM.UPDATE.${streamName}`] : []),
          ...consumersOf(user).flatMap(consuming),
        ],
        subscribe: [inbox, nudgeSubject(user)],
      };
  }
}

const readingStream = ['STREAM.INFO', 'STREAM.MSG.GET', 'CONSUMER.LIST'].map(
  (request) => `$JS.API.${request}.${streamName}`,
);

const replayConsumers: Record<DatabaseService, StreamConsumer[]> = {
  identity: [
    { name: userReplayConsumer, subject: events.userDeleted.subject },
    { name: providerReplayConsumer, subject: events.providerDeleted.subject },
    { name: revocationReplayConsumer, subject: events.apiKeyRevoked.subject },
  ],
  calendar: [],
  customer: [{ name: replayConsumer, subject: events.customerErasureRequested.subject }],
  notification: [],
  webhook: [],
};

function consumersOf(service: DatabaseService): StreamConsumer[] {
  const durable = consumedEvents(service).map((definition) => ({
    name: consumerName(service, definition),
    subject: definition.subject,
  }));
  return [...durable, ...replayConsumers[service]];
}

/** Creating a consumer names the subject that it delivers: the server rejects a request for any other. */
function consuming({ name, subject }: StreamConsumer): string[] {
  return [
    ...['INFO', 'DELETE', 'MSG.NEXT'].map((request) => `$JS.API.CONSUMER.${request}.${streamName}.${name}`),
    `$JS.API.CONSUMER.CREATE.${streamName}.${name}.${subject}`,
    `$JS.ACK.${streamName}.${name}.>`,
  ];
}
