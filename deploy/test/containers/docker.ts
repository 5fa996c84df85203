import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { deployFolder } from '../kustomizations.ts';

const run = promisify(execFile);
const outputBytes = 64 * 1_024 * 1_024;

/** Runs the docker command and returns its output. Rejects with its error output if its exit code is not 0. */
export async function docker(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await run('docker', args, { env: { ...process.env, ...environment }, maxBuffer: outputBytes });
  return stdout.trim();
}

/** A system of containers. */
export interface Project {
  name: string;
  /** Names of files in `deploy`, of which the later ones change the earlier ones. */
  files: string[];
  /** The variables that they mention. May be changed, for what is started from then on. */
  environment: Record<string, string>;
}

/** compose.yaml, with every port on a free port of the loopback address. */
export function plainProject(name: string): Project {
  // Networks of projects must not overlap.
  const network = `10.213.${createHash('sha256').update(name).digest()[0]}`;
  const environment = {
    GATEWAY_PORTS: '127.0.0.1:0',
    PAGE_PORTS: '127.0.0.1:0',
    INBOX_PORT: '0',
    PUBLIC_URL: 'http://gateway.test',
    PAGE_URL: 'http://page.test',
    CLUSTER_NETWORK: network,
  };
  return { name, files: ['compose.yaml', 'test/containers/cluster/compose.yaml'], environment };
}

/** Runs docker compose on the system of that project. */
export function compose(project: Project, ...args: string[]): Promise<string> {
  return docker([...composeCommand(project), ...args], project.environment);
}

/** The arguments of docker that come before the command for that system. */
export function composeCommand({ name, files }: Project): string[] {
  return ['compose', '--project-name', name, ...files.flatMap((file) => ['--file', join(deployFolder, file)])];
}

/** The running containers of a service, oldest first. */
export async function listContainers(project: Project, service: string): Promise<string[]> {
  const filters = [`project=${project.name}`, `service=${service}`].flatMap((label) => [
    '--filter',
    `label=com.docker.compose.${label}`,
  ]);
  const ids = await docker(['ps', '--quiet', '--no-trunc', ...filters]);
  // `docker ps` lists the newest first.
  return ids
    .split('\n')
    .filter((id) => id !== '')
    .toReversed();
}

export interface ContainerState {
  State: { ExitCode: number; OOMKilled: boolean; StartedAt: string };
  Config: { User: string };
  NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
}

export async function inspectContainer(id: string): Promise<ContainerState> {
  const [container] = JSON.parse(await docker(['inspect', id])) as [ContainerState];
  return container;
}

/** The address on this machine where a container's port is published, `127.0.0.1:32768`. */
export async function publishedAddress(id: string, port: number): Promise<string> {
  const [address = ''] = (await docker(['port', id, String(port)])).split('\n');
  return address;
}
