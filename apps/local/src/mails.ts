import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, UsageError } from './config.ts';
import { repositoryRoot } from '@scheduling/stack';
import { readStackFile } from './stack-file.ts';

createCommand(
  'npm run mails --',
  'Send a sample of every mail in every language to the inbox of the running stack.',
).parse();

try {
  const { smtp, inbox } = await readStackFile(dataDirOf(process.env));
  const main = join(repositoryRoot, 'apps/notification/src/main.ts');
  const { status } = spawnSync(process.execPath, [main, 'samples'], {
    env: { ...process.env, SMTP_URL: smtp },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) console.log(`Sent a sample of every mail in every language to ${inbox ?? smtp}`);
  process.exitCode = status ?? 1;
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}
