import { namedKeysFormat, parseNamedKeys, readEnvironment } from '@scheduling/runtime';
import { readServiceSettings } from '@scheduling/service';

export type Config = ReturnType<typeof readConfig>;

/** The only reader of the environment. */
export function readConfig(environment: NodeJS.ProcessEnv) {
  return readEnvironment(environment, (read) => ({
    ...readServiceSettings(read),
    identityAddress: read.text('IDENTITY_ADDRESS'),
    calendarAddress: read.text('CALENDAR_ADDRESS'),
    customerAddress: read.text('CUSTOMER_ADDRESS'),
    /** The keys that seal the secrets of webhooks in the database; the first one seals, all of them open. */
    secretKeys: read.parsed('WEBHOOK_SECRET_KEYS', namedKeysFormat, parseNamedKeys),
    /** How many webhooks are sent events concurrently. */
    webhookConnections: read.integer('WEBHOOK_CONNECTIONS', { min: 2, max: 1_000 }, 50),
    /** For development: endpoints may be in any network, and need no TLS. */
    allowPrivate: read.oneOf('WEBHOOK_ALLOW_PRIVATE', ['true', 'false'], 'false') === 'true',
  }));
}
