import { createClient, ProblemError } from '@scheduling/client';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, UsageError } from './config.ts';
import { fillCalendar } from './fill-calendar.ts';
import { readStackFile } from './stack-file.ts';

createCommand(
  'npm run seed --',
  'Fill the calendar of the CRM "demo" on the running stack: two providers, two weeks of bookings.',
).parse();

try {
  const { gateway, crmId, apiKey, inbox } = await readStackFile(dataDirOf(process.env));
  const client = createClient({ url: gateway, crmId, key: apiKey });
  const { providers, bookings, rejected } = await fillCalendar(client, Temporal.Now.plainDateISO());
  console.log(`${bookings} bookings of ${providers.join(' and ')}; ${rejected} slots were no longer free.`);
  console.log(
    `curl ${gateway}/crms/${crmId}/provider/${providers[0]}/appointments -H 'X-SERVICE-CLIENT-ID: ${apiKey}'`,
  );
  if (inbox !== null) console.log(`The mails are in the inbox: ${inbox}`);
} catch (error) {
  if (!(error instanceof UsageError || error instanceof ProblemError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
