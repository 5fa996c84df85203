import { parseAllDocuments } from 'yaml';

/** The fields of a Kubernetes object that the checks use for every kind. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  [field: string]: unknown;
}

/** The manifests in a YAML stream, such as the output of kustomize. */
export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}
