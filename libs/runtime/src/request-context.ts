import { trace } from '@opentelemetry/api';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';

/** What belongs to one request on its way through HTTP, gRPC, NATS and mail. */
export interface RequestContext {
  requestId: string;
  /** Epoch milliseconds after which nobody waits for the answer any more. Absent for work that no caller waits for. */
  deadlineMs?: number;
  /** The client's `Idempotency-Key`, which goes along with the calls to the services behind; these keep it to themselves. */
  idempotencyKey?: string;
  /** In a service: the key of the call being served, and the SHA-256 of what it asks for. */
  idempotency?: Idempotency;
}

/** What tells a repeated request from a new one. */
export interface Idempotency {
  key: string;
  fingerprint: Buffer;
}

const storage = new AsyncLocalStorage<RequestContext>();

export function runWithContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** The context of the request being served, undefined outside of one. */
export function currentContext(): RequestContext | undefined {
  return storage.getStore();
}

/** The trace that the running code is part of; undefined while nothing is traced. */
export function currentTraceId(): string | undefined {
  return trace.getActiveSpan()?.spanContext().traceId;
}

export function newRequestId(): string {
  return randomUUID();
}
