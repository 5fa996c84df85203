import { type Attributes, context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { DomainError } from '@scheduling/errors';
import type { TracingOptions } from './export-spans.ts';

/** What spans say must not be personal: route patterns, ids, states and the CRM, never an address, a reference or a text. */
export interface SpanOptions {
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER';
  attributes?: Attributes;
  /** The `traceparent` (W3C Trace Context) under which another process began this; absent: the span of the running code. */
  parent?: string | undefined;
}

/** One step of a request's way. While nothing is traced it costs nothing and does nothing. */
export interface ActiveSpan {
  /** Runs the work as a part of this span. */
  run<T>(work: () => T): T;
  set(attributes: Attributes): void;
  /** By an error or by a status of HTTP. What the caller is told, such as a conflict, is an answer and no failure. */
  fail(reason: unknown): void;
  end(): void;
}

/** Sends spans to the collector from now on. Disposal sends what is left, for 1 s at most. */
export async function startTracing(options: TracingOptions): Promise<AsyncDisposable> {
  if (options.endpoint === '') return { [Symbol.asyncDispose]: () => Promise.resolve() };
  // Loading the SDK takes longer than the rest of a service's start.
  const { exportSpans } = await import('./export-spans.ts');
  return exportSpans(options);
}

export function startSpan(name: string, { kind, attributes = {}, parent }: SpanOptions): ActiveSpan {
  const outer = parent === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, { traceparent: parent });
  const span = trace.getTracer('scheduling').startSpan(name, { kind: SpanKind[kind], attributes }, outer);
  const inner = trace.setSpan(outer, span);
  return {
    run: (work) => context.with(inner, work),
    set: (more) => span.setAttributes(more),
    fail: (reason) => {
      span.setAttribute('error.type', typeOf(reason));
      if (!isAnswer(reason)) span.setStatus({ code: SpanStatusCode.ERROR });
    },
    end: () => span.end(),
  };
}

/** A span around some work, from its start to its end. */
export async function inSpan<T>(name: string, options: SpanOptions, work: (span: ActiveSpan) => Promise<T>): Promise<T> {
  const span = startSpan(name, options);
  try {
    return await span.run(() => work(span));
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/** Adds to the span of the running code. */
export function describeSpan(attributes: Attributes): void {
  trace.getActiveSpan()?.setAttributes(attributes);
}

/** What lets another process go on with this trace (W3C Trace Context). Undefined while nothing is traced. */
export function currentTraceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** Its text is left out: it may quote what somebody entered. */
function typeOf(reason: unknown): string {
  if (typeof reason === 'number') return String(reason);
  if (reason instanceof DomainError) return reason.code;
  return reason instanceof Error ? reason.name : typeof reason;
}

function isAnswer(reason: unknown): boolean {
  return reason instanceof DomainError && reason.category !== 'unavailable';
}
