import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { randomUUID } from 'node:crypto';
import type { Logger } from './logger.ts';
import type { TracingSettings } from './tracing-settings.ts';
import { within } from './within.ts';

export interface TracingOptions {
  /** The name of the service in its spans. */
  service: string;
  settings: TracingSettings;
  logger: Logger;
}

const exportTimeoutMs = 2_000;
const batchEveryMs = 1_000;
/** After the 8 s that work in progress may take, and within the 10 s of a stop. */
const lastExportMs = 1_000;

/**
 * Registers OpenTelemetry's SDK for this process. If the collector is unavailable, spans are lost, but never a request.
 */
export function exportSpans({ service, settings, logger }: TracingOptions): AsyncDisposable {
  setGlobalErrorHandler((error) =>
    logger.warn({ reason: error instanceof Error ? error.message : 'unknown' }, 'spans could not be sent'),
  );
  const exporter = new OTLPTraceExporter({
    url: `${settings.endpoint.replace(/\/$/, '')}/v1/traces`,
    timeoutMillis: exportTimeoutMs,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.namespace': 'scheduling',
      'service.name': service,
      'service.instance.id': randomUUID(),
    }),
    sampler: createSampler(settings),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, scheduledDelayMillis: batchEveryMs, exportTimeoutMillis: exportTimeoutMs }),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return {
    [Symbol.asyncDispose]: async () => {
      await within(provider.shutdown(), lastExportMs).catch(() => logger.warn('the last spans could not be sent'));
      trace.disable();
      propagation.disable();
      context.disable();
    },
  };
}

/** The first process of a trace decides for all others, and a client that sends a trace has decided for all of ours. */
export function createSampler({ sampler, ratio }: Pick<TracingSettings, 'sampler' | 'ratio'>): Sampler {
  switch (sampler) {
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'always_off':
      return new AlwaysOffSampler();
  }
}
