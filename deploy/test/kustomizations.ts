import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const deployFolder = join(import.meta.dirname, '..');
export const repositoryRoot = join(deployFolder, '..');
const kubernetes = join(deployFolder, 'kubernetes');

const development = { name: 'development', folder: join(kubernetes, 'overlays/development') };
export const production = { name: 'production', folder: join(kubernetes, 'overlays/production') };
/** The production overlay with the components that are off by default. */
export const mutualTls = { name: 'production with mutual TLS', folder: join(import.meta.dirname, 'mutual-tls') };
export const tracing = {
  name: 'production with tracing, on OpenShift',
  folder: join(import.meta.dirname, 'tracing'),
};
export const natsTls = {
  name: 'production with TLS to NATS and an Ingress',
  folder: join(import.meta.dirname, 'nats-tls'),
};
export const overlays = [development, production, mutualTls, tracing, natsTls];
/**
 * What a team applies alone, for three services: each rendering takes a second, and the others are rendered as parts of
 * the whole.
 */
export const partsOfProduction = ['gateway', 'page', 'calendar'].map((service) => ({
  service,
  name: `${service} of production`,
  folder: join(production.folder, service),
}));
export const operators = {
  name: 'production with the component for operators',
  folder: join(import.meta.dirname, 'operators'),
};
export const admin = { name: 'admin', folder: join(kubernetes, 'admin') };
export const observability = { name: 'observability', folder: join(deployFolder, 'observability') };
export const certificates = { name: 'certificates', folder: join(kubernetes, 'examples/mutual-tls') };
export const examples = { name: 'examples', folder: join(kubernetes, 'examples') };
/** The examples with the components that are off by default. */
export const completeExamples = {
  name: 'examples with backups and TLS to NATS, on OpenShift',
  folder: join(import.meta.dirname, 'examples'),
};
export const recovery = { name: 'recovery', folder: join(kubernetes, 'examples/recovery') };
export const gatewayApi = { name: 'gateway-api', folder: join(kubernetes, 'examples/gateway-api') };
export const kustomizations = [
  ...overlays,
  operators,
  admin,
  ...partsOfProduction,
  examples,
  completeExamples,
  recovery,
  certificates,
  gatewayApi,
  observability,
];

/** The paths that lead to page, where it has the host of the gateway. */
export const pagePaths = ['/book', '/booking', '/decide', '/calendar'];

/** What `kubectl run` adds to a pod of the admin command. */
export function readAdminPod(): { metadata: object; spec: object } {
  return JSON.parse(readFileSync(join(admin.folder, 'pod.json'), 'utf8')) as { metadata: object; spec: object };
}
