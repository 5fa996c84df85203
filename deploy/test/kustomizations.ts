import { join } from 'node:path';

export const deployFolder = join(import.meta.dirname, '..');
export const repositoryRoot = join(deployFolder, '..');
const kubernetes = join(deployFolder, 'kubernetes');

/** The production overlay with the components that are off by default, one at a time. */
export const mutualTls = { name: 'production with mutual TLS', folder: join(import.meta.dirname, 'mutual-tls') };
export const tracing = { name: 'production with tracing', folder: join(import.meta.dirname, 'tracing') };
export const overlays = [...['development', 'production'].map((name) => ({ name, folder: join(kubernetes, 'overlays', name) })), mutualTls, tracing];
export const observability = { name: 'observability', folder: join(deployFolder, 'observability') };
export const certificates = { name: 'certificates', folder: join(kubernetes, 'examples/mutual-tls') };
export const examples = { name: 'examples', folder: join(kubernetes, 'examples') };
export const kustomizations = [...overlays, examples, certificates, observability];
