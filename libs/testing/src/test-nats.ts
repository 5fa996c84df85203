export interface TestNats extends AsyncDisposable {
  url: string;
  stop(): Promise<void>;
  /** Restarts the stopped server on the same port. */
  start(): Promise<void>;
  /** The same, but with all of JetStream's data on disk deleted. */
  startEmpty(): Promise<void>;
}
