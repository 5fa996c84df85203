/** Updates the table of scopes in docs/interface.md with those of the routes: node apps/gateway/write-scope-table.ts */
import { readFileSync, writeFileSync } from 'node:fs';
import { interfaceDocument } from './test/error-table.ts';
import { scopeTable, scopeTableSection } from './test/scope-table.ts';

writeFileSync(
  interfaceDocument,
  scopeTableSection.replace(readFileSync(interfaceDocument, 'utf8'), await scopeTable()),
);
