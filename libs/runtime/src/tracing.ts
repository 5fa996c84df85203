import { type Attributes, context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { DomainError } from '@scheduling/errors';
import type { TracingOptions } from './export-spans.ts';

/** Span attributes must not be personal data: use route patterns, ids, states and the CRM, never an address, a reference or a text. */
export interface SpanOptions {
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER';
  attributes?: Attributes;
  /** The `traceparent` (W3C Trace Context) of the process that started this; absent: the span of the running code. */
  parent?: string | undefined;
}

/** One step in processing a request. Without tracing it costs nothing and does nothing. */
export interface ActiveSpan {
  /** Runs the work within this span. */
  run<T>(work: () => T): T;
  set(attributes: Attributes): void;
  /** Marks the span as failed, by an error or an HTTP status. A rejection such as a conflict is a normal response, not a failure. */
  fail(reason: unknown): void;
  end(): void;
}

/** Starts sending spans to the collector. Disposal sends the rest, for 1 s at most. */
export async function startTracing(options: TracingOptions): Promise<AsyncDisposable> {
  if (options.endpoint === '') return { [Symbol.asyncDispose]: () => Promise.resolve() };
  // Loaded only when needed, because that takes longer than the rest of a service's start.
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

/** Runs work in a span, from its start to its end. */
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

/** Adds attributes to the span of the running code. */
export function describeSpan(attributes: Attributes): void {
  trace.getActiveSpan()?.setAttributes(attributes);
}

/** The header with which another process continues this trace (W3C Trace Context). Undefined without tracing. */
export function currentTraceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** Its message is left out: it may quote user input. */
function typeOf(reason: unknown): string {
  if (typeof reason === 'number') return String(reason);
  if (reason instanceof DomainError) return reason.code;
  return reason instanceof Error ? reason.name : typeof reason;
}

function isAnswer(reason: unknown): boolean {
  return reason instanceof DomainError && reason.category !== 'unavailable';
}
