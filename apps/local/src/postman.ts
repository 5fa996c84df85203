import { writeFile } from 'node:fs/promises';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, UsageError } from './config.ts';
import { toPostmanCollection } from './postman-collection.ts';
import { readStackFile } from './stack-file.ts';

const command = createCommand(
  'npm run postman --',
  'Write the API of the running stack as a collection that Postman, Bruno, Insomnia and Hoppscotch import.',
)
  .option('--output <file>', 'the file to write', 'scheduling.postman_collection.json')
  .parse();

try {
  const { gateway, crmId, apiKey } = await readStackFile(dataDirOf(process.env));
  const { output } = command.opts<{ output: string }>();
  const collection = await toPostmanCollection(await (await fetch(`${gateway}/openapi.json`)).text(), {
    baseUrl: gateway,
    crmId,
    apiKey,
  });
  await writeFile(output, `${JSON.stringify(collection, undefined, 2)}\n`);
  console.log(`Wrote ${output}, with the address and the API key of the CRM "${crmId}" on this machine as variables.`);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}
