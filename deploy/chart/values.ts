import type { Service } from '@scheduling/runtime';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Document, type YAMLMap } from 'yaml';
import { services } from './sources.ts';
import { helmYaml, type Node } from './template.ts';

/** The parts of a JSON schema that this one uses. */
interface Schema {
  description?: string;
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  $ref?: string;
  definitions?: Record<string, Schema>;
}

/** What the manifests say, as the defaults of values. */
export interface Defaults {
  podSecurityContext: Node;
  /** Without the selectors, which name the service. */
  topologySpreadConstraints: Node;
  services: Record<Service, ServiceDefaults>;
}

export interface ServiceDefaults {
  minReplicas: Node;
  maxReplicas: Node;
  resources: Node;
}

/** The schema of the chart's values, with the defaults of the manifests and the registry of this build. */
export function valuesSchema(defaults: Defaults, registry?: string): Schema {
  const schema = JSON.parse(readFileSync(join(import.meta.dirname, 'values.schema.json'), 'utf8')) as Schema;
  if (registry !== undefined) schema.properties!.image!.properties!.registry!.default = registry;
  schema.properties!.podSecurityContext!.default = defaults.podSecurityContext;
  schema.properties!.topologySpreadConstraints!.default = defaults.topologySpreadConstraints;
  const schemaOf = (service: Service): Schema => ({
    $ref: '#/definitions/service',
    default: {
      tag: '',
      digest: '',
      ...defaults.services[service],
      environment: {},
      serviceAccount: { annotations: {} },
    },
  });
  schema.properties!.services!.properties = Object.fromEntries(services.map((service) => [service, schemaOf(service)]));
  return schema;
}

/** values.yaml: the defaults of a schema, with its descriptions as comments. */
export function writeValues(schema: Schema): string {
  const document = new Document(defaultOf(schema), helmYaml);
  describe(document.contents as YAMLMap, schema.properties ?? {});
  const required = (schema.required ?? []).map((name) => ` ${name}: ${schema.properties![name]!.description!}`);
  document.commentBefore = [
    ' The defaults; values.schema.json says what is allowed. These have none:',
    ...required,
  ].join('\n');
  return document.toString({ lineWidth: helmYaml.lineWidth });
}

function defaultOf({ properties, default: value }: Schema): unknown {
  if (properties === undefined) return value;
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, defaultOf(schema)]));
}

function describe(map: YAMLMap, properties: Record<string, Schema>): void {
  for (const pair of map.items as { key: { value: string; commentBefore?: string }; value: unknown }[]) {
    const { description, properties: inner } = properties[pair.key.value]!;
    if (description !== undefined) pair.key.commentBefore = ` ${description}`;
    if (inner !== undefined && pair.key.value !== 'services') describe(pair.value as YAMLMap, inner);
  }
}
