import type { Service } from '@scheduling/runtime';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { parameterise } from './parameterise.ts';
import { isService, readSources, services, type Source } from './sources.ts';
import { type Fields, helmYaml, type Node, readAt, writeTemplate } from './template.ts';
import { type Defaults, type ServiceDefaults, valuesSchema, writeValues } from './values.ts';

/** The files of the chart that are copied as they are. */
const copied = {
  'README.md': 'README.md',
  '../../LICENSE': 'LICENSE',
  'helpers.tpl': 'templates/_helpers.tpl',
  'NOTES.txt': 'templates/NOTES.txt',
};

/**
 * Writes the Helm chart into a folder. Its templates are what kustomize renders, with the parts that components add
 * under conditions.
 *
 * @param registry of the images, the default of the value; otherwise that of the schema
 */
export async function writeChart(folder: string, registry?: string): Promise<void> {
  const sources = await readSources();
  const schema = valuesSchema(readDefaults(sources), registry);
  await mkdir(join(folder, 'templates'), { recursive: true });
  const write = (file: string, text: string): Promise<void> => writeFile(join(folder, file), text);
  await write('Chart.yaml', stringify(await describeChart(), helmYaml));
  await write('values.schema.json', `${JSON.stringify(schema, undefined, 2)}\n`);
  await write('values.yaml', writeValues(schema));
  for (const [from, to] of Object.entries(copied)) await copyFile(join(import.meta.dirname, from), join(folder, to));
  for (const [name, templates] of groupTemplates(sources)) await write(`templates/${name}.yaml`, templates.join(''));
}

async function describeChart(): Promise<object> {
  const { version, description, license } = JSON.parse(
    await readFile(join(import.meta.dirname, '../../package.json'), 'utf8'),
  ) as { version: string; description: string; license: string };
  return {
    apiVersion: 'v2',
    name: 'scheduling',
    description,
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: '>=1.31.0-0',
    annotations: { 'artifacthub.io/license': license },
  };
}

function readDefaults(sources: Source[]): Defaults {
  const read = (service: Service, kind: string, path: string): Node =>
    readAt(sources.find((source) => source.app === service && source.kind === kind)!.manifest, path.split('.'));
  const pod = 'spec.template.spec';
  const defaultsOf = (service: Service): ServiceDefaults => ({
    minReplicas: read(service, 'HorizontalPodAutoscaler', 'spec.minReplicas'),
    maxReplicas: read(service, 'HorizontalPodAutoscaler', 'spec.maxReplicas'),
    resources: read(service, 'Deployment', `${pod}.containers.0.resources`),
  });
  // All services have the same ones.
  const [first] = services;
  const constraints = read(first, 'Deployment', `${pod}.topologySpreadConstraints`) as Fields[];
  return {
    podSecurityContext: read(first, 'Deployment', `${pod}.securityContext`),
    topologySpreadConstraints: constraints.map(({ labelSelector: _selector, ...constraint }) => constraint),
    services: Object.fromEntries(services.map((service) => [service, defaultsOf(service)])) as Defaults['services'],
  };
}

/** One file for each app; the ConfigMap of a service has its own, of which its Deployment contains the checksum. */
function groupTemplates(sources: Source[]): Map<string, string[]> {
  const files = new Map<string, string[]>();
  for (const source of sources) {
    const name = isService(source.app) && source.kind === 'ConfigMap' ? `${source.app}-configuration` : source.app;
    files.set(name, [...(files.get(name) ?? []), writeTemplate(parameterise(source))]);
  }
  return files;
}
