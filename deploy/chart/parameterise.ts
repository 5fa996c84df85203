import { isHttpService, type Service } from '@scheduling/runtime';
import { isService, type Source } from './sources.ts';
import { Expression, type Fields, Inserted, isFields, type Node, Optional, readAt, replaceAt } from './template.ts';

/** What the chart has at a place of a manifest, by its path; a function gets what the manifest has there. */
type Places = Record<string, Node | ((present: Node) => Node)>;

type IngressRule = Fields & { http: { paths: (Fields & { backend: { service: { name: string } } })[] } };

const pageUrl = '(.Values.pageUrl | default .Values.publicUrl)';
const bothHosts = `${hostnameOf(pageUrl)} ${hostnameOf('.Values.publicUrl')}`;
const pageSharesHost = `eq ${bothHosts}`;
const pageHasOwnHost = `ne ${bothHosts}`;

/** The manifest with the values of the chart at their places. */
export function parameterise({ kind, name, app, manifest, condition }: Source): Node {
  const template = replaceEverywhere(manifest) as Fields;
  const places = { ...placesOf[kind]?.(app, name), ...(app === 'monitoring' ? monitoringPlaces : {}) };
  for (const [path, value] of Object.entries(places)) {
    const keys = path.split('.');
    replaceAt(template, keys, typeof value === 'function' ? value(readAt(template, keys)) : value);
  }
  const conditions = [condition, ...conditionsOf(kind, app)].filter((given) => given !== undefined);
  return conditions.length === 0
    ? template
    : new Optional(conditions.length === 1 ? conditions[0]! : `and ${conditions.join(' ')}`, template);
}

function conditionsOf(kind: string, app: string): string[] {
  const ofApp = { monitoring: ['.Values.monitoring.enabled'], admin: ['.Values.operators.enabled'] }[app] ?? [];
  const ofKind =
    {
      NetworkPolicy: ['.Values.networkPolicies.enabled'],
      HorizontalPodAutoscaler: ['.Values.autoscaling.enabled'],
    }[kind] ?? [];
  return [...ofApp, ...ofKind];
}

/** By kind. Everything else is the same in every installation. */
const placesOf: Record<string, (app: string, name: string) => Places> = {
  Deployment: (app) => ({
    'spec.replicas': new Optional(
      'not .Values.autoscaling.enabled',
      new Expression(`.Values.services.${app}.minReplicas`),
    ),
    'spec.template.metadata.annotations': new Inserted(
      `(mergeOverwrite (dict "checksum/configuration" (${checksum(app)})) .Values.podAnnotations)`,
    ),
    ...podPlaces(app),
    'spec.template.spec.topologySpreadConstraints': (present) => new Inserted(spreadOf(present as Fields[])),
    'spec.template.spec.containers.0.resources': new Inserted(`.Values.services.${app}.resources`),
  }),
  Job: (app, name) => ({
    // Existing Jobs cannot be changed, so each revision has its own migrations. helm test runs the doctor.
    ...(isService(app)
      ? { 'metadata.name': new Expression(`printf "${name}-%d" .Release.Revision`) }
      : { 'metadata.annotations': { 'helm.sh/hook': 'test', 'helm.sh/hook-delete-policy': 'before-hook-creation' } }),
    ...podPlaces(app),
  }),
  ConfigMap: (app): Places =>
    isService(app)
      ? {
          data: (present) =>
            new Inserted(
              `(mergeOverwrite ${configurationOf(app, present)}${pageAddressOf(app)} .Values.services.${app}.environment)`,
            ),
        }
      : {},
  HorizontalPodAutoscaler: (app) => ({
    'spec.minReplicas': new Expression(`.Values.services.${app}.minReplicas`),
    'spec.maxReplicas': new Expression(`.Values.services.${app}.maxReplicas`),
  }),
  ServiceAccount: (app): Places =>
    isService(app) ? { 'metadata.annotations': yamlIfSet(`.Values.services.${app}.serviceAccount.annotations`) } : {},
  NetworkPolicy: () => ({
    'spec.egress': (present) => [...(present as Node[]), new Inserted('.Values.networkPolicies.extraEgress')],
  }),
  HTTPRoute: (app) => ({
    'spec.hostnames.0': app === 'page' ? pageHostname : hostname,
    'spec.parentRefs': new Inserted('(include "scheduling.parentRefs" . | fromYamlArray)'),
  }),
  Ingress: () => ({
    'metadata.annotations': (present) =>
      new Inserted(`(mergeOverwrite ${writeDict(present)} .Values.ingress.annotations)`),
    'spec.ingressClassName': textIfSet('.Values.ingress.className'),
    'spec.tls.0.hosts': [hostname, new Optional(pageHasOwnHost, pageHostname)],
    'spec.tls.0.secretName': new Expression('.Values.ingress.tlsSecret'),
    'spec.rules': (present) => ingressRules(present as [IngressRule]),
  }),
};

const hostname = new Expression(hostnameOf('.Values.publicUrl'));
const pageHostname = new Expression(hostnameOf(pageUrl));

const monitoringPlaces: Places = {
  'metadata.labels': (present) => new Inserted(`(mergeOverwrite ${writeDict(present)} .Values.monitoring.labels)`),
};

/**
 * A rule for each host, because controllers refuse two rules with the same one: the paths of the pages are in the rule of the
 * gateway, unless the pages have a host of their own.
 */
function ingressRules([rule]: [IngressRule]): Node[] {
  const { paths } = rule.http;
  const ofPage = paths.filter((path) => path.backend.service.name === 'page');
  const others = paths.filter((path) => !ofPage.includes(path));
  const withPage = ofPage.map((path) => new Optional(pageSharesHost, path));
  return [
    { ...rule, host: hostname, http: { paths: [...withPage, ...others] } },
    new Optional(pageHasOwnHost, { ...rule, host: pageHostname, http: { paths: ofPage } }),
  ];
}

function podPlaces(app: string): Places {
  const pod = 'spec.template.spec';
  return {
    [`${pod}.imagePullSecrets`]: yamlIfSet('.Values.image.pullSecrets'),
    [`${pod}.nodeSelector`]: yamlIfSet('.Values.nodeSelector'),
    [`${pod}.tolerations`]: yamlIfSet('.Values.tolerations'),
    [`${pod}.affinity`]: yamlIfSet('.Values.affinity'),
    [`${pod}.priorityClassName`]: textIfSet('.Values.priorityClassName'),
    [`${pod}.securityContext`]: new Inserted('.Values.podSecurityContext'),
    [`${pod}.containers.0.image`]: new Expression(
      `include "scheduling.image" (list . "${app}" .Values.${isService(app) ? `services.${app}` : 'operators'})`,
    ),
    [`${pod}.containers.0.imagePullPolicy`]: textIfSet('.Values.image.pullPolicy'),
  };
}

/** The constraints of all services, for the pods of the one whose constraints these are. */
function spreadOf([constraint]: Fields[]): string {
  const selector = writeDict(constraint!['labelSelector']!);
  return `(include "scheduling.topologySpreadConstraints" (list . ${selector}) | fromYamlArray)`;
}

/** Of the template with the ConfigMap, so that a change of it replaces the pods. */
function checksum(service: string): string {
  return `include (print .Template.BasePath "/${service}-configuration.yaml") . | sha256sum`;
}

/**
 * The variables with a value of the chart, in the ConfigMaps that have them or, like the last one, of every service
 * with a stream.
 */
function configurationOf(service: Service, present: Node): string {
  const values: Record<string, Node> = {
    LOG_LEVEL: new Expression('.Values.logLevel'),
    PUBLIC_URL: new Expression('.Values.publicUrl'),
  };
  const variables = Object.entries(present as Fields).map(([name, value]) => [name, values[name] ?? value] as const);
  const stream = isHttpService(service)
    ? []
    : [['NATS_STREAM_REPLICAS', new Expression('(.Values.natsStreamReplicas | int | toString)')] as const];
  return writeDict(Object.fromEntries([...variables, ...stream]));
}

/** If the pages of persons have an address of their own, for those who write links to them, and for page itself. */
function pageAddressOf(service: Service): string {
  if (!['gateway', 'notification', 'page'].includes(service)) return '';
  return ' (ternary (dict "PAGE_URL" .Values.pageUrl) (dict) (ne .Values.pageUrl ""))';
}

/**
 * Values inside of manifests: those of the component for tracing, and the namespace that metrics are scraped from and
 * spans sent to.
 */
function replaceEverywhere(node: Node): Node {
  if (node instanceof Optional) return new Optional(node.condition, replaceEverywhere(node.content));
  if (Array.isArray(node)) return node.map(replaceEverywhere);
  if (typeof node !== 'object' || node === null || node instanceof Expression || node instanceof Inserted) return node;
  if (node['name'] === 'OTEL_EXPORTER_OTLP_ENDPOINT')
    return { ...node, value: new Expression('.Values.tracing.endpoint | quote') };
  if (node['name'] === 'OTEL_TRACES_SAMPLER_ARG')
    return { ...node, value: new Expression('.Values.tracing.ratio | quote') };
  if (node['kubernetes.io/metadata.name'] === 'monitoring')
    return { 'kubernetes.io/metadata.name': new Expression('.Values.monitoring.namespace') };
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, replaceEverywhere(value)]));
}

function hostnameOf(url: string): string {
  return `(urlParse ${url}).hostname`;
}

function textIfSet(value: string): Optional {
  return new Optional(value, new Expression(value));
}

function yamlIfSet(value: string): Optional {
  return new Optional(value, new Inserted(value));
}

function writeDict(fields: Node): string {
  const entries = Object.entries(fields as Fields).map(([key, value]) => {
    const written =
      value instanceof Expression ? value.code : isFields(value) ? writeDict(value) : JSON.stringify(value);
    return `${JSON.stringify(key)} ${written}`;
  });
  return `(dict ${entries.join(' ')})`;
}
