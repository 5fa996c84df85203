/**
 * Updates the table of codes in docs/interface.md with the codes of the services and the routes: node
 * apps/gateway/write-error-table.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { errorTable, errorTableSection, interfaceDocument } from './test/error-table.ts';

writeFileSync(
  interfaceDocument,
  errorTableSection.replace(readFileSync(interfaceDocument, 'utf8'), await errorTable()),
);
