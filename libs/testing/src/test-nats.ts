export interface TestNats extends AsyncDisposable {
  url: string;
  stop(): Promise<void>;
  /** Starts the stopped server on the same port. */
  start(): Promise<void>;
  /** The same, but everything JetStream had on its disk is gone. */
  startEmpty(): Promise<void>;
}
