import { Metadata } from '@grpc/grpc-js';

export const requestIdHeader = 'x-request-id';
/** The trace of the caller (W3C Trace Context). */
export const traceHeader = 'traceparent';
/** Who asked for it; see `RequestContext.actor`. */
export const actorHeader = 'x-actor';
/** See `RequestContext.operator`. */
export const operatorHeader = 'x-operator';
export const idempotencyHeader = 'idempotency-key';
/** Marks calls that a service makes while it serves another one. */
export const nestedHeader = 'x-nested';

export function toMetadata(headers: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}
