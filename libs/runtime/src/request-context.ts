import { trace } from '@opentelemetry/api';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';

/** The context of one request on its way through HTTP, gRPC, NATS and mail. */
export interface RequestContext {
  requestId: string;
  /**
   * Who asked for it: `crm:<prefix of the key>`, or `person` for a page without a key. Absent for what a service does
   * by itself.
   */
  actor?: string;
  /** In the gateway: the CRM whose key the request has. */
  crmId?: string;
  /**
   * In the admin command, and in a service that it calls: who works with it, by their own account. Not sent on to other
   * services.
   */
  operator?: string;
  /**
   * Epoch milliseconds after which the caller no longer waits for the response. Absent for work without a waiting
   * caller.
   */
  deadlineMs?: number;
  /** In a service: aborts when the caller no longer waits, for whatever reason. */
  signal?: AbortSignal;
  /** In a service: the code runs on behalf of a call from another service. */
  isServed?: boolean;
  /** The client's `Idempotency-Key`, which is sent with the calls to other services; these do not pass it on. */
  idempotencyKey?: string;
  /** Called if a service answers the request with the response to an earlier one with the same key. */
  onReplay?: () => void;
  /** In a service: the key of the current call, and the SHA-256 of its request. */
  idempotency?: Idempotency;
}

/** Distinguishes a repeated request from a new one. */
export interface Idempotency {
  key: string;
  fingerprint: Buffer;
  /** Set once the response to an earlier request has been repeated. */
  isReplayed: boolean;
}

const storage = new AsyncLocalStorage<RequestContext>();

export function runWithContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** The context of the current request, undefined outside of one. */
export function currentContext(): RequestContext | undefined {
  return storage.getStore();
}

/** Who caused what the running code does, as events say it. */
export function currentActor(): string {
  return currentContext()?.actor ?? 'service';
}

/** The trace of the running code; undefined without tracing. */
export function currentTraceId(): string | undefined {
  return trace.getActiveSpan()?.spanContext().traceId;
}

export function newRequestId(): string {
  return randomUUID();
}
