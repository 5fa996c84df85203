import { eventually } from '@scheduling/testing';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot } from '../kustomizations.ts';
import { compose, listContainers, type Project, publishedAddress } from './docker.ts';

const run = promisify(execFile);

/** The addresses of all running gateways. */
export async function gatewayUrls(project: Project): Promise<string[]> {
  return Promise.all((await listContainers(project, 'gateway')).map(gatewayUrl));
}

export async function gatewayUrl(container: string): Promise<string> {
  return `http://${await publishedAddress(container, 8080)}`;
}

export async function inboxUrl(project: Project): Promise<string> {
  const [id = ''] = await listContainers(project, 'inbox');
  return `http://${await publishedAddress(id, 1080)}`;
}

export interface Crm {
  crmId: string;
  apiKey: string;
}

/** Creates a CRM without a rate limit, and a key for it, with the admin command as documented in deploy/README.md. */
export async function createCrm(project: Project): Promise<Crm> {
  // A busy machine may not answer within the 2 s of a call; by then the CRM may exist, so every attempt creates a new
  // one.
  return eventually(async () => {
    const crmId = `crm-${randomUUID().slice(0, 8)}`;
    await runAdmin(project, 'crm', 'create', crmId, '--rate-limit', '0');
    return { crmId, apiKey: (await runAdmin(project, 'key', 'create', crmId)).trim() };
  });
}

/** Runs the admin command in its image. Rejects with its output if its exit code is not 0. */
export function runAdmin(project: Project, ...args: string[]): Promise<string> {
  return compose(project, 'run', '--rm', '-T', 'admin', ...args);
}

/** Has the superuser of Postgres execute a statement. Returns the rows as text. */
export function query(project: Project, sql: string, database = 'postgres'): Promise<string> {
  const psql = ['psql', '--username=postgres', '--tuples-only', '--no-align', '--command', sql, database];
  return compose(project, 'exec', '-T', '--user', 'postgres', 'postgres', ...psql);
}

/** Runs `npm run demo`, without the step that installs packages. Rejects with its output if its exit code is not 0. */
export async function runDemo(environment: NodeJS.ProcessEnv): Promise<string> {
  const file = join(repositoryRoot, 'apps/local/src/demo.ts');
  const { stdout } = await run(process.execPath, [file], { env: { ...process.env, NO_COLOR: '1', ...environment } });
  return stdout;
}
