import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { writeChart } from '../chart/write-chart.ts';
import { runKustomize } from '../kustomize.ts';
import { charts, hasHelm, runHelm } from './charts.ts';
import { kustomizations } from './kustomizations.ts';

/** The output of kustomize or Helm: the manifests as YAML, or its error. */
export type Rendering = { yaml: string } | { refusal: string };

declare module 'vitest' {
  interface ProvidedContext {
    /** Of kustomize, by folder. */
    renderings: Record<string, Rendering>;
    /** Of Helm, by the names in `charts`. */
    charts: Record<string, Rendering>;
    /** Where the chart is. */
    chart: string;
  }
}

/**
 * Renders every kustomization and the chart once, because each rendering takes about a second and many files use the
 * same ones.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'chart-'));
  const renderings = Promise.all(
    kustomizations.map(
      async (kustomization) => [kustomization.folder, await render(() => runKustomize(kustomization.folder))] as const,
    ),
  );
  await writeChart(folder);
  const rendered = hasHelm
    ? charts.map(async ({ name, values }) => [name, await render(() => runHelm(folder, values))] as const)
    : [];
  project.provide('chart', folder);
  project.provide('charts', Object.fromEntries(await Promise.all(rendered)));
  project.provide('renderings', Object.fromEntries(await renderings));
  return () => rm(folder, { recursive: true });
}

async function render(run: () => Promise<string>): Promise<Rendering> {
  try {
    return { yaml: await run() };
  } catch (error) {
    return { refusal: (error as Error).message };
  }
}
