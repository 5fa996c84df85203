import { join } from 'node:path';
import { repositoryRoot } from './kustomizations.ts';

export const operationsDocument = join(repositoryRoot, 'docs/operations.md');

const [begin, end] = ['<!-- made by deploy/write-configuration.ts -->\n', '\n<!-- end -->'];

/** What stands between the two markers. */
export function tableOf(document: string): string {
  const [from, to] = placeOf(document);
  return document.slice(from, to);
}

export function withTable(document: string, table: string): string {
  const [from, to] = placeOf(document);
  return document.slice(0, from) + table + document.slice(to);
}

function placeOf(document: string): [from: number, to: number] {
  const [from, to] = [document.indexOf(begin) + begin.length, document.indexOf(end)];
  if (from < begin.length || to < from) throw new Error('docs/operations.md has lost the markers of its configuration table');
  return [from, to];
}
