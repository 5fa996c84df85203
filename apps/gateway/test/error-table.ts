import { generatedSection } from '@scheduling/testing';
import { join } from 'node:path';
import { type ProblemCode, statusOf, textOf } from '../src/problem.ts';
import { requestErrors } from '../src/request-errors.ts';
import { codesByOperation, createAppUnderTest, type Document } from './app-under-test.ts';

export const interfaceDocument = join(import.meta.dirname, '../../../docs/interface.md');

export const errorTableSection = generatedSection('<!-- made by apps/gateway/write-error-table.ts -->\n');

/**
 * The codes that clients can get, in Markdown: those that the API document lists for an operation, and the gateway's
 * own.
 */
export async function errorTable(): Promise<string> {
  await using gateway = await createAppUnderTest();
  const documented = [...codesByOperation(JSON.parse(gateway.document) as Document).values()].flat();
  const codes = [...new Set([...Object.keys(requestErrors), ...documented])] as ProblemCode[];
  const rows = codes
    .toSorted((a, b) => statusOf(a) - statusOf(b) || (a < b ? -1 : 1))
    .map((code) => `| ${statusOf(code)} | \`${code}\` | ${textOf(code)} |`);
  return ['| Status | Code | Meaning |', '|---|---|---|', ...rows].join('\n');
}
