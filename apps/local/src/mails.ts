import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, UsageError } from './config.ts';
import { repositoryRoot } from '@scheduling/stack';
import { readStackFile } from './stack-file.ts';

createCommand(
  'npm run mails --',
  'Send a sample of every mail in every language to the inbox of the running stack, and show each beside the one before.',
).parse();

try {
  const dataDir = dataDirOf(process.env);
  const { smtp, inbox } = await readStackFile(dataDir);
  const page = join(dataDir, 'mails.html');
  const main = join(repositoryRoot, 'apps/notification/src/main.ts');
  const { status } = spawnSync(process.execPath, [main, 'samples'], {
    env: { ...process.env, SMTP_URL: smtp, SAMPLES_PAGE: page },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) {
    console.log(`Sent a sample of every mail in every language to ${inbox ?? smtp}`);
    console.log(`Each beside the one before: ${pathToFileURL(page).href}`);
  }
  process.exitCode = status ?? 1;
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}
