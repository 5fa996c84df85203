import { Metadata, status as Status, type StatusObject } from '@grpc/grpc-js';
import { DomainError } from '@scheduling/errors';
import {
  type ActiveSpan,
  currentContext,
  type FairQueue,
  type Logger,
  type Metrics,
  newRequestId,
  type RequestContext,
  runWithContext,
  startSpan,
} from '@scheduling/runtime';
import { createHash } from 'node:crypto';
import { type MethodDefinition, spanAttributes, spanName } from './definition.ts';
import { internalStatus, toStatus } from './errors.ts';
import { actorHeader, idempotencyHeader, operatorHeader, requestIdHeader, traceHeader } from './headers.ts';
import type { HostedService, TurnOf } from './hosted-service.ts';
import { type Caller, requireCaller } from './require-caller.ts';
import { type MeasureCall, measureServedCalls } from './rpc-metrics.ts';
import { callWeight, lightWeight, takeTurn, turnOfCrm } from './take-turn.ts';

export interface ServingOptions {
  logger: Logger;
  /** Maps errors of a library, such as a lost database connection, to domain errors; returns others unchanged. */
  translateError?: (error: unknown) => unknown;
  /** Awaited before each call, and each message of a stream. If it rejects, so does the call. */
  ready?: () => Promise<void>;
  /** Where the calls are counted. */
  metrics?: Metrics;
  /** Shares the process between tenants: a call waits for a turn of the CRM that its request names. */
  turns?: FairQueue;
}

/** A call of a method. */
export interface IncomingCall {
  request: unknown;
  header(name: string): string | undefined;
  /** In epoch milliseconds; infinite if it has none. */
  deadlineMs: number;
  caller: Caller;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** A method of a server. */
export interface ServedMethod {
  method: MethodDefinition;
  handler: HostedService['handlers'][string];
  /** How much of a turn each call takes. */
  weight: number;
  turnOf: TurnOf;
  /** The names in the certificates of its callers. Undefined in plain text: then callers have no names. */
  callers: readonly string[] | undefined;
  measure: MeasureCall;
  options: ServingOptions;
}

/** A method without callers serves nobody. */
export function servedMethods(
  hosted: HostedService,
  { isMutual }: { isMutual: boolean },
  options: ServingOptions,
): [string, ServedMethod][] {
  const { definition, handlers, callers, light = [], turnOf = turnOfCrm } = hosted;
  const measure = measureServedCalls(options.metrics);
  return Object.entries(definition).map(([name, method]) => {
    const weight = light.includes(name) ? lightWeight : callWeight;
    return [
      name,
      {
        method,
        handler: handlers[name]!,
        weight,
        turnOf,
        callers: isMutual ? (callers[name] ?? []) : undefined,
        measure,
        options,
      },
    ];
  });
}

export interface CallResponse {
  response: unknown;
  /** Whether it repeats the response to an earlier call with the same idempotency key. */
  isReplay: boolean;
}

/** The response of a unary method, or the status with which it fails. Never rejects. */
export function answerCall(served: ServedMethod, call: IncomingCall): Promise<CallResponse | StatusObject> {
  return serve(served, call, async () => {
    const { options, weight, turnOf } = served;
    using _turn = await takeTurn(options.turns, call, { weight, turnOf, signal: call.signal });
    await requireReady(served, call);
    const response = await served.handler(call.request as never, call.signal);
    return { response, isReplay: currentContext()?.idempotency?.isReplayed === true };
  });
}

/** Rejects also if the caller has given up meanwhile. */
export async function requireReady({ options }: ServedMethod, { signal }: IncomingCall): Promise<void> {
  await options.ready?.();
  signal.throwIfAborted();
}

/** Runs the work of a call within its caller's request context and trace. Resolves with the status if it fails. */
export async function serve<Result>(
  served: ServedMethod,
  call: IncomingCall,
  work: () => Promise<Result>,
): Promise<Result | StatusObject> {
  const { method, callers, measure, options } = served;
  const finish = measure(method);
  const cancel = (): void => finish(Status.CANCELLED);
  call.signal.addEventListener('abort', cancel, { once: true });
  const attributes = () => ({ ...spanAttributes(method), 'rpc.grpc.status_code': Status.OK });
  const span = startSpan(spanName(method), { kind: 'SERVER', attributes, parent: call.header(traceHeader) });
  try {
    const result = await runWithContext(contextOf(call, method), () =>
      span.run(async () => {
        if (callers !== undefined) requireCaller(call.caller, method, callers, options.logger);
        logOperator(call, method, options.logger);
        return await work();
      }),
    );
    finish(Status.OK);
    return result;
  } catch (error) {
    const status = isEndOfCall(error, call) ? givenUp() : fail(span, error, served);
    finish(status.code);
    return status;
  } finally {
    call.signal.removeEventListener('abort', cancel);
    span.end();
  }
}

/** Whether the work has ended only because its caller no longer waits for it. */
function isEndOfCall(error: unknown, { signal }: IncomingCall): boolean {
  return signal.aborted && (error === signal.reason || (error as Partial<Error> | undefined)?.cause === signal.reason);
}

/** Nobody waits for it, unless the caller's clock is behind by some milliseconds: then it tries again later. */
function givenUp(): StatusObject {
  return { code: Status.DEADLINE_EXCEEDED, details: 'the caller no longer waits', metadata: new Metadata() };
}

/** Beside the audit trail, because that is lost with the database. */
function logOperator({ header, request }: IncomingCall, method: MethodDefinition, logger: Logger): void {
  const operator = header(operatorHeader);
  if (operator === undefined || /\/(List|Get)\w+$/.test(method.path)) return;
  const { crmId, prefix, consumer, eventId, since } = request as Record<string, unknown>;
  logger.info({ operator, method: method.path, crmId, prefix, consumer, eventId, since }, 'called by an operator');
}

function fail(span: ActiveSpan, error: unknown, { method, options }: ServedMethod): StatusObject {
  const status = statusFor(error, method, options);
  span.fail(error);
  span.set({ 'rpc.grpc.status_code': status.code });
  return status;
}

function contextOf({ header, deadlineMs, signal, request }: IncomingCall, method: MethodDefinition): RequestContext {
  const key = header(idempotencyHeader);
  const [actor, operator] = [header(actorHeader), header(operatorHeader)];
  return {
    requestId: header(requestIdHeader) ?? newRequestId(),
    isServed: true,
    signal,
    ...(actor !== undefined && { actor }),
    ...(operator !== undefined && { operator }),
    ...(Number.isFinite(deadlineMs) && { deadlineMs }),
    ...(key !== undefined && { idempotency: { key, fingerprint: fingerprintOf(request, method), isReplayed: false } }),
  };
}

/** The fields are in the order of the definition, so the same content has the same bytes. */
function fingerprintOf(request: unknown, { path, requestSerialize }: MethodDefinition): Buffer {
  return createHash('sha256')
    .update(path)
    .update('\0')
    .update(requestSerialize(request as never))
    .digest();
}

function statusFor(error: unknown, method: MethodDefinition, { logger, translateError }: ServingOptions): StatusObject {
  const translated = translateError ? translateError(error) : error;
  if (translated instanceof DomainError) {
    if (translated.category === 'unavailable') logger.warn({ err: translated, method: method.path }, 'unavailable');
    return toStatus(translated);
  }
  logger.error({ err: error, method: method.path }, 'unexpected error');
  return internalStatus();
}
