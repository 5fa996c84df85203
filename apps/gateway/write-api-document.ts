/**
 * Writes the API document, and the collection made of it, without a running service:
 * node apps/gateway/write-api-document.ts openapi.json [collection.json]
 */
import { writeFileSync } from 'node:fs';
import { createAppUnderTest } from './test/app-under-test.ts';

const [documentFile, collectionFile] = process.argv.slice(2);
if (documentFile === undefined)
  throw new Error('usage: node apps/gateway/write-api-document.ts openapi.json [collection.json]');
await using gateway = await createAppUnderTest();
const collection = await gateway.app.http.inject('/collection.json');
const write = (file: string, text: string): void =>
  writeFileSync(file, text.replaceAll('https://scheduling.test', 'https://scheduling.example.com'));
write(documentFile, gateway.document);
if (collectionFile !== undefined) write(collectionFile, collection.body);
