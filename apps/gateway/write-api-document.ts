/** Writes the API document for those who have no service yet: node apps/gateway/write-api-document.ts <file> */
import { writeFileSync } from 'node:fs';
import { createAppUnderTest } from './test/app-under-test.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: node apps/gateway/write-api-document.ts <file>');
await using gateway = await createAppUnderTest();
writeFileSync(file, gateway.document.replaceAll('https://scheduling.test', 'https://scheduling.example.com'));
