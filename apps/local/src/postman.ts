import { readFile, writeFile } from 'node:fs/promises';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, UsageError } from './config.ts';
import { type PostmanCollection, toPostmanCollection } from './postman-collection.ts';
import { readStackFile } from './stack-file.ts';

const command = createCommand(
  'npm run postman --',
  'Write the API of the running stack as a collection that Postman, Bruno, Insomnia and Hoppscotch import.',
)
  .option('--output <file>', 'the file to write', 'scheduling.postman_collection.json')
  .option('--document <file>', 'an API document instead of that of the running stack; the CRM and its key stay empty')
  .parse();

try {
  const { output, document } = command.opts<{ output: string; document?: string }>();
  await (document === undefined ? writeForRunningStack(output) : writeForDocument(output, document));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}

async function writeForRunningStack(output: string): Promise<void> {
  const { gateway, crmId, apiKey } = await readStackFile(dataDirOf(process.env));
  const document = await (await fetch(`${gateway}/openapi.json`)).text();
  await write(output, await toPostmanCollection(document, { baseUrl: gateway, crmId, apiKey }));
  console.log(`Wrote ${output}, with the address and the API key of the CRM "${crmId}" on this machine as variables.`);
}

async function writeForDocument(output: string, file: string): Promise<void> {
  const document = await readFile(file, 'utf8');
  const [server] = (JSON.parse(document) as { servers: { url: string }[] }).servers;
  await write(output, await toPostmanCollection(document, { baseUrl: server!.url, crmId: '', apiKey: '' }));
  console.log(`Wrote ${output}: set its variables crmId and apiKey.`);
}

async function write(output: string, collection: PostmanCollection): Promise<void> {
  await writeFile(output, `${JSON.stringify(collection, undefined, 2)}\n`);
}
