import { ROOT_CONTEXT, SpanKind, trace, TraceFlags } from '@opentelemetry/api';
import { SamplingDecision } from '@opentelemetry/sdk-trace';
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSampler } from './export-spans.ts';
import type { TracingSettings } from './tracing-settings.ts';

type Sampling = Pick<TracingSettings, 'sampler' | 'ratio'>;

const traceIds = Array.from({ length: 1_000 }, () => randomBytes(16).toString('hex'));
const withRatio = (ratio: number): Sampling => ({ sampler: 'parentbased_traceidratio', ratio });

/** Whether a process with this setting records a trace, which it begins or, given the flags, continues. */
function isSampled(sampling: Sampling, traceId: string, traceFlags?: TraceFlags): boolean {
  const parent = { traceId, spanId: 'b7ad6b7169203331', isRemote: true };
  const context =
    traceFlags === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, traceFlags });
  return (
    createSampler(sampling).shouldSample(context, traceId, 'span', SpanKind.SERVER, {}, []).decision ===
    SamplingDecision.RECORD_AND_SAMPLED
  );
}

const sampled = (sampling: Sampling): string[] => traceIds.filter((traceId) => isSampled(sampling, traceId));

describe('a sampler', () => {
  it('with a ratio records this fraction of traces', () => {
    expect(sampled(withRatio(0))).toEqual([]);
    expect(sampled(withRatio(1))).toEqual(traceIds);
    const part = sampled(withRatio(0.1)).length;
    expect(part).toBeGreaterThan(40);
    expect(part).toBeLessThan(180);
  });

  it('decides by the id of the trace: the same in every process, and what a lower ratio records, a higher one does too', () => {
    const [lower, higher] = [sampled(withRatio(0.1)), sampled(withRatio(0.5))];
    expect(sampled(withRatio(0.1))).toEqual(lower);
    expect(lower.filter((traceId) => !higher.includes(traceId))).toEqual([]);
  });

  it('without a ratio records all or nothing', () => {
    expect(sampled({ sampler: 'parentbased_always_on', ratio: 0 })).toEqual(traceIds);
    expect(sampled({ sampler: 'parentbased_always_off', ratio: 1 })).toEqual([]);
    expect(sampled({ sampler: 'always_off', ratio: 1 })).toEqual([]);
  });

  it.each<[Sampling, boolean]>([
    [{ sampler: 'parentbased_always_on', ratio: 1 }, true],
    [withRatio(0), true],
    [{ sampler: 'parentbased_always_off', ratio: 1 }, true],
    [{ sampler: 'always_off', ratio: 1 }, false],
  ])('continues with %j what another process records: %j, and nothing else', (sampling, continues) => {
    expect(traceIds.filter((traceId) => isSampled(sampling, traceId, TraceFlags.SAMPLED) !== continues)).toEqual([]);
    expect(traceIds.filter((traceId) => isSampled(sampling, traceId, TraceFlags.NONE))).toEqual([]);
  });
});
