import type { EnvironmentReader } from './environment.ts';

export type TracingSettings = ReturnType<typeof readTracingSettings>;

/**
 * Those of OpenTelemetry with which a trace is recorded completely or not at all, if all services have the same one.
 */
const samplers = ['parentbased_always_on', 'parentbased_traceidratio', 'parentbased_always_off', 'always_off'] as const;

/** Where spans are sent, and which traces are recorded. The names and the values are those of OpenTelemetry. */
export function readTracingSettings(read: EnvironmentReader) {
  return {
    /** The base URL of an OTLP/HTTP collector; empty: tracing is off, and none of its code is loaded. */
    endpoint: read.url('OTEL_EXPORTER_OTLP_ENDPOINT', ['http:', 'https:'], ''),
    sampler: read.oneOf('OTEL_TRACES_SAMPLER', samplers, 'parentbased_always_on'),
    /** The fraction of traces that `parentbased_traceidratio` records. */
    ratio: read.number('OTEL_TRACES_SAMPLER_ARG', { min: 0, max: 1 }, 1),
  };
}
