import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { databaseServices, repositoryRoot } from '@scheduling/stack';
import { dataDirOf, UsageError, withCertificatesOf } from './config.ts';
import { readStackFile } from './stack-file.ts';

/**
 * `npm run admin`: runs the admin command, which reads addresses from its environment. If none is set, those of the
 * running stack are used.
 */
const addressVariables = ['PUBLIC_URL', 'PAGE_URL', 'NATS_URL', 'SMTP_URL', ...databaseServices.map(addressVariable)];
const args = process.argv.slice(2);

try {
  const isGiven = addressVariables.some((name) => process.env[name]);
  const asksForHelp = args.length === 0 || args.some((argument) => ['help', '--help', '-h'].includes(argument));
  run(
    isGiven || asksForHelp ? process.env : { ...withCertificatesOf('admin', process.env), ...(await stackAddresses()) },
  );
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

async function stackAddresses(): Promise<NodeJS.ProcessEnv> {
  const { gateway, page, admin, nats, smtp } = await readStackFile(dataDirOf(process.env));
  const addresses = databaseServices.map((service) => [addressVariable(service), admin[service]]);
  return { PUBLIC_URL: gateway, PAGE_URL: page, NATS_URL: nats, SMTP_URL: smtp, ...Object.fromEntries(addresses) };
}

function addressVariable(service: string): string {
  return `${service.toUpperCase()}_ADDRESS`;
}

function run(environment: NodeJS.ProcessEnv): void {
  const child = spawn(process.execPath, [join(repositoryRoot, 'apps/admin/src/main.ts'), ...args], {
    stdio: 'inherit',
    env: environment,
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  child.once('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}
