import { randomBytes } from 'node:crypto';
import { natsUsers, type NatsUser, permissionsOf } from './nats-users.ts';

/**
 * The users and their permissions as a part of the configuration of nats-server, for all of its versions since 2.9. The
 * server reads the passwords from its environment ({@link passwordVariable}). There is no user for clients that give
 * none, so these are refused.
 */
export function natsUsersConfiguration(): string {
  return `authorization {\n  timeout: ${authenticationSeconds}\n  users = [\n${natsUsers.map(describeUser).join('')}  ]\n}\n`;
}

/**
 * How long a client may take to log in: one that has just started may be busy loading its code for longer than the
 * default of 2 s.
 */
const authenticationSeconds = 10;

/** The environment variable of nats-server that holds a user's password. */
export function passwordVariable(user: NatsUser): string {
  return `${user.toUpperCase()}_NATS_PASSWORD`;
}

/** Random passwords of all users, for a server that is started with them. */
export interface NatsPasswords {
  /** The environment of the server. */
  environment: Record<string, string>;
  /** The server's address with the name and the password of a user. */
  urlFor(user: NatsUser, serverUrl: string): string;
}

export function createNatsPasswords(): NatsPasswords {
  const passwords = Object.fromEntries(natsUsers.map((user) => [user, randomBytes(24).toString('hex')])) as Record<
    NatsUser,
    string
  >;
  return {
    // In quotes, because nats-server parses the values of variables like the rest of its configuration: without them
    // 1e5 would be a number.
    environment: Object.fromEntries(natsUsers.map((user) => [passwordVariable(user), `"${passwords[user]}"`])),
    urlFor: (user, serverUrl) => serverUrl.replace('://', `://${user}:${passwords[user]}@`),
  };
}

function describeUser(user: NatsUser): string {
  const { publish, subscribe } = permissionsOf(user);
  return `    {
      user: ${user}
      password: $${passwordVariable(user)}
      permissions {
        publish ${describeSubjects(publish)}
        subscribe ${describeSubjects(subscribe)}
      }
    }
`;
}

/** An empty list of allowed subjects would allow all of them. */
function describeSubjects(subjects: string[]): string {
  if (subjects.length === 0) return '{ deny: ">" }';
  return `{\n          allow: [\n${subjects.map((subject) => `            "${subject}"\n`).join('')}          ]\n        }`;
}
