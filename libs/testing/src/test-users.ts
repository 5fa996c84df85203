import { createNatsPasswords, type NatsUser, natsUsersConfiguration } from '@scheduling/events';
import { randomBytes } from 'node:crypto';

/** Who may connect to a nats-server of a test. */
export interface TestUsers {
  /** Passed to nats-server; undefined: everybody may connect. */
  settings: { configuration: string; environment: Record<string, string> } | undefined;
  urlFor(user: NatsUser | 'test', serverUrl: string): string;
}

/** The users of the system with their permissions, and one for the tests themselves. */
export function createTestUsers(): TestUsers {
  const passwords = createNatsPasswords();
  const testPassword = `t${randomBytes(24).toString('hex')}`;
  const configuration = natsUsersConfiguration().replace(
    'users = [\n',
    'users = [\n    { user: test, password: $TEST_NATS_PASSWORD }\n',
  );
  return {
    settings: { configuration, environment: { ...passwords.environment, TEST_NATS_PASSWORD: testPassword } },
    urlFor: (user, serverUrl) =>
      user === 'test' ? serverUrl.replace('://', `://test:${testPassword}@`) : passwords.urlFor(user, serverUrl),
  };
}

/** A server without users. */
export const noUsers: TestUsers = { settings: undefined, urlFor: (_user, serverUrl) => serverUrl };
