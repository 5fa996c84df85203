import type { NatsUser } from '@scheduling/events';

export interface TestNats extends AsyncDisposable {
  /** The address for a user of the system, with its permissions, or for a test, which may do everything. */
  url: (user: NatsUser | 'test') => string;
  stop(): Promise<void>;
  /** Restarts the stopped server on the same port. */
  start(): Promise<void>;
  /** The same, but with all of JetStream's data on disk deleted. */
  startEmpty(): Promise<void>;
}
