import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

/** A Kubernetes object, as far as the checks look at every kind alike. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  [field: string]: unknown;
}

interface Generator {
  name: string;
  behavior?: 'merge';
  literals?: string[];
  files?: string[];
  options?: { labels?: Record<string, string> };
}

interface Kustomization {
  namespace?: string;
  resources: string[];
  components: string[];
  images: { name: string; newName: string; newTag: string }[];
  configMapGenerator: Generator[];
  patches: { target: { kind: string; name?: string }; patch: string }[];
}

const known = new Set(['apiVersion', 'kind', 'namespace', 'resources', 'components', 'images', 'configMapGenerator', 'patches']);

/**
 * Renders a kustomization as `kubectl kustomize` does, as far as the ones here need it: resources, components, ConfigMaps from literals and files, JSON
 * patches of the operations "add" and "replace", images and the namespace. No package on npm does that. Anything else is refused rather than passed over. The
 * names of ConfigMaps stay without the hash of their content.
 */
export function renderKustomization(folder: string): Manifest[] {
  return transform([], folder);
}

/** What a kustomization makes of the manifests that are there: none, or for a component those of the kustomization that names it. */
function transform(given: Manifest[], folder: string): Manifest[] {
  const kustomization = readKustomization(folder);
  const own = [...given, ...kustomization.resources.flatMap((resource) => readResource(join(folder, resource)))];
  const manifests = kustomization.components.reduce((all, component) => transform(all, join(folder, component)), own);
  for (const generator of kustomization.configMapGenerator) generateConfigMap(manifests, folder, generator);
  for (const patch of kustomization.patches) applyPatch(manifests, patch);
  for (const manifest of manifests) {
    setImages(manifest, kustomization.images);
    if (kustomization.namespace !== undefined && manifest.kind !== 'Namespace') manifest.metadata.namespace = kustomization.namespace;
  }
  return manifests;
}

function readKustomization(folder: string): Kustomization {
  const file = join(folder, 'kustomization.yaml');
  const content = parse(readFileSync(file, 'utf8')) as Partial<Kustomization>;
  const unknown = Object.keys(content).filter((field) => !known.has(field));
  if (unknown.length > 0) throw new Error(`${file}: ${unknown.join(', ')} cannot be rendered here`);
  return { resources: [], components: [], images: [], configMapGenerator: [], patches: [], ...content };
}

function readResource(path: string): Manifest[] {
  if (!existsSync(path)) throw new Error(`${path} does not exist`);
  if (statSync(path).isDirectory()) return renderKustomization(path);
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    const [error] = document.errors;
    if (error) throw new Error(`${path}: ${error.message}`);
    return document.toJS() as Manifest;
  });
}

function generateConfigMap(manifests: Manifest[], folder: string, { name, behavior, literals = [], files = [], options }: Generator): void {
  const data = Object.fromEntries([
    ...literals.map((literal) => [literal.slice(0, literal.indexOf('=')), literal.slice(literal.indexOf('=') + 1)] as const),
    ...files.map((file) => [basename(file), readFileSync(join(folder, file), 'utf8')] as const),
  ]);
  const existing = manifests.find((manifest) => manifest.kind === 'ConfigMap' && manifest.metadata.name === name);
  if ((behavior === 'merge') !== (existing !== undefined)) throw new Error(`the ConfigMap ${name} ${existing ? 'exists already' : 'does not exist'}`);
  if (existing) existing.data = { ...(existing.data as object), ...data };
  else manifests.push({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...(options?.labels && { labels: options.labels }) }, data });
}

function applyPatch(manifests: Manifest[], { target, patch }: Kustomization['patches'][number]): void {
  const targets = manifests.filter(({ kind, metadata }) => kind === target.kind && (target.name === undefined || metadata.name === target.name));
  if (targets.length === 0) throw new Error(`a patch finds no ${target.kind} ${target.name ?? ''}`);
  for (const { op, path, value } of parse(patch) as { op: string; path: string; value: unknown }[]) {
    if (op !== 'add' && op !== 'replace') throw new Error(`the operation "${op}" cannot be rendered here`);
    for (const manifest of targets) change(manifest, op, path.split('/').slice(1), value);
  }
}

/** Adding what is there already would remove it: that is refused here, though not by kubectl. */
function change(node: unknown, op: 'add' | 'replace', [key, ...rest]: string[], value: unknown): void {
  const fields = node as Record<string, unknown>;
  const adds = op === 'add' && rest.length === 0;
  if (key === undefined || key in fields === adds) throw new Error(`a patch finds ${adds ? 'already a' : 'no'} "${key}"`);
  if (rest.length === 0) fields[key] = value;
  else change(fields[key], op, rest, value);
}

/** In every `image` of every `containers`, wherever it stands. */
function setImages(node: unknown, images: Kustomization['images']): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if (key === 'containers') {
      for (const container of value as { image: string }[]) {
        const image = images.find(({ name }) => name === container.image);
        if (image) container.image = `${image.newName}:${image.newTag}`;
      }
    }
    setImages(value, images);
  }
}
