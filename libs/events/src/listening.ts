import type { Msg, NatsConnection } from '@nats-io/transport-node';

/** Subscriptions that NATS may deny. Changed permissions take effect without a reconnect, in either direction. */
export interface Listening {
  /** True while any of the subjects is denied: what is published there is lost. */
  readonly isDenied: boolean;
  /** Calls back for every message, as soon as the permissions of the user include the subject. */
  listen(connection: NatsConnection, subject: string, onMessage: (message: Msg) => void): void;
}

const retryMs = 5_000;

/** @param onRegained called when a subject that was denied is no longer */
export function createListening(onRegained: () => void): Listening {
  const denied = new Set<string>();

  function listen(connection: NatsConnection, subject: string, onMessage: (message: Msg) => void): void {
    if (connection.isClosed()) return;
    const subscription = connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) return onMessage(message);
        denied.add(subject);
        tryAgain();
      },
    });
    const tryAgain = (): void => void setTimeout(() => listen(connection, subject, onMessage), retryMs).unref();
    const confirm = async (): Promise<void> => {
      // NATS responds after it has denied the subscription, if it does.
      await connection.flush();
      if (!subscription.isClosed() && denied.delete(subject)) onRegained();
    };
    const giveUp = (): void => {
      subscription.unsubscribe();
      tryAgain();
    };
    if (denied.has(subject)) confirm().catch(giveUp);
  }

  return {
    get isDenied() {
      return denied.size > 0;
    },
    listen,
  };
}
