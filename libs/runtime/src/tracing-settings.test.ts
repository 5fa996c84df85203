import { describe, expect, it } from 'vitest';
import { readEnvironment } from './environment.ts';
import { readTracingSettings } from './tracing-settings.ts';

const read = (environment: NodeJS.ProcessEnv) => readEnvironment(environment, readTracingSettings);

describe('the settings of tracing', () => {
  it('record every trace, as soon as there is a collector', () => {
    expect(read({})).toEqual({ endpoint: '', sampler: 'parentbased_always_on', ratio: 1 });
  });

  it.each(['parentbased_always_on', 'parentbased_traceidratio', 'parentbased_always_off', 'always_off'])(
    'allow %s',
    (sampler) => {
      expect(read({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: '0.1' })).toMatchObject({
        sampler,
        ratio: 0.1,
      });
    },
  );

  it('refuse samplers with which traces would be incomplete, and wrong arguments, and name the variables', () => {
    expect(() => read({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '10' })).toThrow(
      /OTEL_TRACES_SAMPLER must be one of .*, not "traceidratio"\n.*OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "10"/,
    );
  });
});
