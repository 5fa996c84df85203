import {
  type Attributes,
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { DomainError } from '@scheduling/errors';
import type { TracingOptions } from './export-spans.ts';

/**
 * Span attributes must not be personal data: use route patterns, ids, states and the CRM, never an address, a reference
 * or a text.
 */
export interface SpanOptions {
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER';
  /** Built only if the span is recorded. */
  attributes?: () => Attributes;
  /** The `traceparent` (W3C Trace Context) of the process that started this; absent: the span of the running code. */
  parent?: string | undefined;
  /** When it began, on the clock of `performance`; by default now. */
  startedMs?: number | undefined;
}

/** One step in processing a request. Without tracing it does nothing. */
export interface ActiveSpan {
  /** Runs the work within this span. */
  run<T>(work: () => T): T;
  set(attributes: Attributes): void;
  /** Records that something happens now. */
  note(event: string, attributes?: Attributes): void;
  /**
   * Marks the span as failed, by an error or an HTTP status. A rejection such as a conflict is a normal response, not a
   * failure.
   */
  fail(reason: unknown): void;
  end(): void;
}

/** Starts sending spans to the collector. Disposal sends the rest, for 1 s at most. */
export async function startTracing(options: TracingOptions): Promise<AsyncDisposable> {
  if (options.settings.endpoint === '') return { [Symbol.asyncDispose]: () => Promise.resolve() };
  // Loaded only when needed, because that takes longer than the rest of a service's start.
  const { exportSpans } = await import('./export-spans.ts');
  return exportSpans(options);
}

export function startSpan(name: string, { kind, attributes, parent, startedMs }: SpanOptions): ActiveSpan {
  const outer = parent === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, { traceparent: parent });
  const span = trace.getTracer('scheduling').startSpan(name, { kind: SpanKind[kind], startTime: startedMs }, outer);
  if (attributes !== undefined && span.isRecording()) span.setAttributes(attributes());
  const inner = trace.setSpan(outer, span);
  return {
    run: (work) => context.with(inner, work),
    set: (more) => span.setAttributes(more),
    // With a time, because the SDK otherwise rounds to milliseconds in a span whose beginning is given.
    note: (event, more) => span.addEvent(event, more, performance.now()),
    fail: (reason) => {
      span.setAttribute('error.type', typeOf(reason));
      if (!isAnswer(reason)) span.setStatus({ code: SpanStatusCode.ERROR });
    },
    end: () => span.end(performance.now()),
  };
}

/** Runs work in a span, from its start to its end. */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (span: ActiveSpan) => Promise<T>,
): Promise<T> {
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

/**
 * Whether the running code has a span that is recorded. Without tracing, or in a trace that is not sampled, asking
 * costs nothing.
 */
export function isRecorded(): boolean {
  return trace.getActiveSpan()?.isRecording() === true;
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

/**
 * Its code, such as `participation.not_found`, `ECONNREFUSED` or `55P03`, or else its class. Its message is left out:
 * it may quote user input.
 */
function typeOf(reason: unknown): string {
  if (typeof reason === 'number') return String(reason);
  if (!(reason instanceof Error)) return typeof reason;
  return 'code' in reason && typeof reason.code === 'string' ? reason.code : reason.name;
}

function isAnswer(reason: unknown): boolean {
  return reason instanceof DomainError && reason.category !== 'unavailable';
}
