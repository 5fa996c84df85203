import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { chartLikeProduction, chartWithEverythingElse, hasHelm } from './charts.ts';
import { completeExamples, observability, production, recovery } from './kustomizations.ts';
import { renderChart, renderKustomization } from './render-kustomization.ts';

/** Labels whose values are names of objects in the cluster, and the names that they have for some manifests. */
const namesByLabel: Record<string, (manifests: readonly Manifest[]) => string[]> = {
  // helm test waits for the Job of the doctor, and reports its failure.
  job_name: (manifests) => namesOf('Job')(manifests).filter((name) => name !== 'doctor'),
  horizontalpodautoscaler: namesOf('HorizontalPodAutoscaler'),
  statefulset: namesOf('StatefulSet'),
  persistentvolumeclaim: (manifests) => manifests.flatMap(claimsOf),
  // The jobs are named after the pods, and the processes name themselves like their Deployments.
  job: namesOf('Deployment'),
  service: namesOf('Deployment'),
};

interface PrometheusRule extends Manifest {
  spec: { groups: { rules: { alert: string; expr: string }[] }[] };
}

interface Matcher {
  alert: string;
  label: string;
  pattern: string;
}

const servers = [completeExamples, recovery].flatMap(({ folder }) => renderKustomization(folder));
const systems = [
  {
    name: 'the overlay for production',
    manifests: [production, observability].flatMap(({ folder }) => renderKustomization(folder)),
  },
  ...(hasHelm ? [chartLikeProduction, chartWithEverythingElse] : []).map(({ name }) => ({
    name: `the chart with the values "${name}"`,
    manifests: renderChart(name),
  })),
];

describe.each(systems)('the alerts of $name', ({ manifests }) => {
  const matchers = manifests.filter(isRule).flatMap(matchersIn);

  it('name objects by each of these labels', () => {
    expect(new Set(matchers.map(({ label }) => label))).toEqual(new Set(Object.keys(namesByLabel)));
  });

  it.each(matchers)('$alert matches the names that are installed: $label $pattern', ({ label, pattern }) => {
    const names = namesByLabel[label]!([...manifests, ...servers]);
    // As Prometheus does.
    const matched = names.filter((name) => new RegExp(`^(?:${pattern})$`).test(name));
    expect(matched).not.toEqual([]);
    // A pattern stands for all of them, a name for one.
    if (!/^[\w-]+$/.test(pattern)) expect(matched).toEqual(names);
  });
});

function isRule(manifest: Manifest): manifest is PrometheusRule {
  return manifest.kind === 'PrometheusRule';
}

function matchersIn({ spec }: PrometheusRule): Matcher[] {
  return spec.groups
    .flatMap(({ rules }) => rules)
    .flatMap(({ alert, expr }) =>
      [...expr.matchAll(/(\w+)=~?"([^"]*)"/g)].map(([, label, pattern]) => ({
        alert,
        label: label!,
        pattern: pattern!,
      })),
    )
    .filter(({ label }) => label in namesByLabel);
}

function namesOf(kind: string) {
  return (manifests: readonly Manifest[]): string[] =>
    manifests.filter((manifest) => manifest.kind === kind).map(({ metadata }) => metadata.name);
}

/** Of the first instance: that of a StatefulSet has the number 0, that of a Cluster of CloudNativePG the number 1. */
function claimsOf({ kind, metadata: { name }, spec }: Manifest): string[] {
  const { volumeClaimTemplates = [], walStorage } = (spec ?? {}) as {
    volumeClaimTemplates?: Manifest[];
    walStorage?: object;
  };
  if (kind === 'Cluster') return [`${name}-1`, ...(walStorage === undefined ? [] : [`${name}-1-wal`])];
  return kind === 'StatefulSet' ? volumeClaimTemplates.map((claim) => `${claim.metadata.name}-${name}-0`) : [];
}
