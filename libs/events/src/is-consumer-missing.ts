import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';

/** Whether a request failed because the stream has no consumer with its name. */
export function isConsumerMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.ConsumerNotFound;
}
