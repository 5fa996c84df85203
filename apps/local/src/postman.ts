import { writeFile } from 'node:fs/promises';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, UsageError } from './config.ts';
import { readStackFile } from './stack-file.ts';

interface Variable {
  key: string;
  value: string;
}

const command = createCommand(
  'npm run postman --',
  'Write the API of the running stack as a collection that Postman, Bruno, Insomnia and Hoppscotch import.',
)
  .option('--output <file>', 'the file to write', 'scheduling.postman_collection.json')
  .parse();

try {
  const { gateway, crmId, apiKey } = await readStackFile(dataDirOf(process.env));
  const { output } = command.opts<{ output: string }>();
  const collection = (await (await fetch(`${gateway}/collection.json`)).json()) as { variable: Variable[] };
  for (const variable of collection.variable)
    variable.value = { baseUrl: gateway, crmId, apiKey }[variable.key] ?? variable.value;
  await writeFile(output, `${JSON.stringify(collection, undefined, 2)}\n`);
  console.log(`Wrote ${output}, with the address and the API key of the CRM "${crmId}" on this machine as variables.`);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}
