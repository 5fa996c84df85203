import { execFile } from 'node:child_process';
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

/** The tests' changes to compose.yaml: every port is published on a free port of the loopback address. */
const ports = { GATEWAY_PORTS: '127.0.0.1:0', INBOX_PORT: '0', PUBLIC_URL: 'http://gateway.test' };

const files = ['compose.yaml', 'test/containers/cluster/compose.yaml'].flatMap((file) => ['--file', join(deployFolder, file)]);

/** Runs docker compose on the system of that project. */
export function compose(project: string, ...args: string[]): Promise<string> {
  return docker(['compose', '--project-name', project, ...files, ...args], ports);
}

/** The running containers of a service, oldest first. */
export async function listContainers(project: string, service: string): Promise<string[]> {
  const filters = [`project=${project}`, `service=${service}`].flatMap((label) => ['--filter', `label=com.docker.compose.${label}`]);
  const ids = await docker(['ps', '--quiet', '--no-trunc', ...filters]);
  // `docker ps` lists the newest first.
  return ids.split('\n').filter((id) => id !== '').toReversed();
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
