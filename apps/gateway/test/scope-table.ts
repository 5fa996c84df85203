import { generatedSection } from '@scheduling/testing';
import { createAppUnderTest, type Document } from './app-under-test.ts';

export const scopeTableSection = generatedSection('<!-- made by apps/gateway/write-scope-table.ts -->\n');

/** Which scope each operation needs, in Markdown, in the order of the API document. */
export async function scopeTable(): Promise<string> {
  await using gateway = await createAppUnderTest();
  const { paths } = JSON.parse(gateway.document) as Document;
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { summary, 'x-required-scope': scope }]) => {
      const address = path.replace('/crms/{crmId}', '…').replaceAll(/\{(\w+)\}/g, ':$1');
      return `| ${summary} | \`${method.toUpperCase()} ${address}\` | \`${scope}\` |`;
    }),
  );
  return ['| Operation | Request | Scope |', '|---|---|---|', ...rows].join('\n');
}
