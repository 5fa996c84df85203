/**
 * Updates the configuration table of docs/operations.md from every service's `config.ts`: node
 * deploy/write-configuration.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { configurationTable } from './test/configuration-table.ts';
import { configurationSection, operationsDocument } from './test/operations-document.ts';

writeFileSync(
  operationsDocument,
  configurationSection.replace(readFileSync(operationsDocument, 'utf8'), await configurationTable()),
);
