import { databaseServices, httpServices, type Service } from '@scheduling/runtime';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stringify } from 'yaml';
import { runKustomize } from '../kustomize.ts';
import { type Manifest, parseManifests } from '../manifest.ts';
import { findAdditions } from './additions.ts';
import { type Fields, Optional, replaceAt } from './template.ts';

const deployFolder = join(import.meta.dirname, '..');

export const services = [...httpServices, ...databaseServices] as const;

/** What components can change. */
const resources = [...services.map((service) => `kubernetes/base/${service}`), 'kubernetes/admin'];

/** The folders in kubernetes/components, and the value that includes each of them. */
const conditions: Record<string, string> = {
  'http-route': '.Values.httpRoute.enabled',
  'page-http-route': '.Values.httpRoute.enabled',
  ingress: '.Values.ingress.enabled',
  'postgres-tls': '.Values.postgresTls.enabled',
  'nats-tls': '.Values.natsTls.enabled',
  'mutual-tls': '.Values.mutualTls.enabled',
  operators: '.Values.operators.enabled',
  tracing: '.Values.tracing.enabled',
};

/** The name of the variant without any of them. */
const plainVariant = 'plain';

/**
 * A manifest of the kustomizations, in which everything that a component adds has its condition; it may have one
 * itself.
 */
export interface Source {
  kind: string;
  name: string;
  /** The service that it belongs to, `admin`, or `monitoring` of all. */
  app: string;
  manifest: Fields;
  condition?: string;
}

export function isService(app: string): app is Service {
  return (services as readonly string[]).includes(app);
}

/** What the chart is made of. Names have no hashes, and objects no namespace. */
export async function readSources(): Promise<Source[]> {
  const { [plainVariant]: plain = [], ...extended } = await renderVariants();
  const known = new Map(plain.map((source) => [keyOf(source), source]));
  const differences = Object.entries(conditions).flatMap(([component, condition]) =>
    extended[component]!.map((source) => ({ ...source, condition, target: known.get(keyOf(source))?.manifest })),
  );
  // All are found before the first one is made.
  const additions = differences.flatMap(({ condition, manifest, target }) =>
    target === undefined
      ? []
      : findAdditions(target, manifest).map(({ path, content }) => ({
          target,
          path,
          addition: new Optional(condition, content),
        })),
  );
  for (const { target, path, addition } of additions) replaceAt(target, path, addition);
  return [...plain, ...differences.filter(({ target }) => target === undefined)];
}

/**
 * The manifests without any component, and with each one. All are rendered at once, because most of the time of
 * kustomize is its start: each variant is in a namespace of its name.
 */
async function renderVariants(): Promise<Record<string, Source[]>> {
  // kustomize accepts no absolute paths, and follows links.
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'chart-')));
  try {
    const variants = [plainVariant, ...Object.keys(conditions)];
    await writeKustomization(folder, { resources: variants });
    for (const variant of variants) {
      const path = (part: string): string => relative(join(folder, variant), join(deployFolder, part));
      const additional =
        variant === plainVariant
          ? { resources: [...resources, 'observability'] }
          : { resources, components: [`kubernetes/components/${variant}`] };
      const paths = Object.entries(additional).map(([field, parts]) => [field, parts.map(path)] as const);
      await writeKustomization(join(folder, variant), { namespace: variant, ...Object.fromEntries(paths) });
    }
    const manifests = parseManifests(withoutHashes(await runKustomize(folder)));
    return Object.fromEntries(
      variants.map((variant) => [
        variant,
        manifests.filter(({ metadata }) => metadata.namespace === variant).map(readSource),
      ]),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function writeKustomization(folder: string, content: object): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'kustomization.yaml'),
    stringify({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', ...content }),
  );
}

/** kustomize appends one to the name of a ConfigMap; Helm's convention is an annotation. */
function withoutHashes(text: string): string {
  return text.replaceAll(
    new RegExp(`(name: (?:${services.join('|')}|scheduling-dashboard))-[a-z0-9]{10}$`, 'gm'),
    '$1',
  );
}

function readSource(manifest: Manifest): Source {
  const { name, labels } = manifest.metadata;
  const app = labels?.['app.kubernetes.io/name'];
  if (app === undefined) throw new Error(`${manifest.kind} ${name} has no label with the name of its app`);
  delete manifest.metadata.namespace;
  return {
    kind: manifest.kind,
    name,
    app: app === 'scheduling' ? 'monitoring' : app,
    manifest: manifest as unknown as Fields,
  };
}

function keyOf({ kind, name }: Source): string {
  return `${kind} ${name}`;
}
