import { inject } from 'vitest';
import { type Manifest, parseManifests } from '../manifest.ts';
import type { Rendering } from './global-setup.ts';

/** The manifests by where they come from: parsing them takes longer than most tests. */
const parsed = new Map<string, readonly Manifest[]>();

/** Renders a folder with kustomize. Throws the error of kustomize if it fails. */
export function renderKustomization(folder: string): readonly Manifest[] {
  return parseRendering(folder, inject('renderings')[folder]);
}

/** Renders the chart with Helm and the values of this name. Throws the error of Helm if it fails. */
export function renderChart(name: string): readonly Manifest[] {
  return parseRendering(name, inject('charts')[name]);
}

function parseRendering(source: string, rendering: Rendering | undefined): readonly Manifest[] {
  const known = parsed.get(source);
  if (known !== undefined) return known;
  if (rendering === undefined) throw new Error(`${source} has not been rendered`);
  if ('refusal' in rendering) throw new Error(rendering.refusal);
  const manifests = parseManifests(rendering.yaml);
  parsed.set(source, manifests);
  return manifests;
}

export function findManifest(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const manifest = manifests.find((candidate) => candidate.kind === kind && candidate.metadata.name === name);
  if (!manifest) throw new Error(`there is no ${kind} ${name}`);
  return manifest;
}

/** A variable of a container, with its value or where that is. */
export interface Variable {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef: { name: string; key: string } };
}

/**
 * What a service's Deployment says about its environment: in the ConfigMaps that it refers to, each with a name that
 * ends with the hash of its content, and in itself. Without the secrets.
 */
export function configurationOf(manifests: readonly Manifest[], service: string): Record<string, string> {
  const { spec } = findManifest(manifests, 'Deployment', service) as Manifest & {
    spec: { template: { spec: { containers: [{ envFrom: { configMapRef: { name: string } }[]; env: Variable[] }] } } };
  };
  const [{ envFrom, env }] = spec.template.spec.containers;
  const own = env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]]));
  return Object.assign(
    {},
    ...envFrom.map(({ configMapRef }) => findManifest(manifests, 'ConfigMap', configMapRef.name).data),
    Object.fromEntries(own),
  ) as Record<string, string>;
}
