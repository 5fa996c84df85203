export interface MetricSample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The samples in a response of `/metrics` (Prometheus text format). */
export function readSamples(text: string): MetricSample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(readSample);
}

/** The sum of the samples with this name and these labels; undefined if there is none. */
export function sumSamples(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const found = readSamples(text).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

function readSample(line: string): MetricSample {
  const [, name, labels = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`not a sample: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label = '', text = '']) => [label, text] as const,
  );
  return {
    name,
    labels: Object.fromEntries(pairs),
    value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value),
  };
}
