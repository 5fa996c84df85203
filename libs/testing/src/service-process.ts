import { freePort, spawnChild, waitUntil } from '@scheduling/embedded';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface ServiceProcess extends AsyncDisposable {
  /** The address of its gRPC server, `host:port`. */
  address: string;
  pid: number;
}

const readyTimeoutMs = 60_000;
const stopTimeoutMs = 10_000;

/** Migrates and starts another team's service in a separate process, as in production, for tests that call it. */
export async function startServiceProcess(name: string, environment: Record<string, string>): Promise<ServiceProcess> {
  const main = fileURLToPath(new URL(`../../../apps/${name}/src/main.ts`, import.meta.url));
  const [grpcPort, metricsPort] = [await freePort(), await freePort()];
  const processEnvironment = {
    ...process.env,
    LISTEN_HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    GRPC_PORT: String(grpcPort),
    METRICS_PORT: String(metricsPort),
    ...environment,
  };
  await promisify(execFile)(process.execPath, [main, 'migrate'], { env: processEnvironment });
  const logDir = await mkdtemp(join(tmpdir(), `scheduling-test-${name}-`));
  const child = await spawnChild({
    command: process.execPath,
    args: [main],
    cwd: logDir,
    environment: processEnvironment,
    logFile: join(logDir, 'service.log'),
  });
  const isReady = async () => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).ok;
  await waitUntil(isReady, { what: `${name} to be ready`, timeoutMs: readyTimeoutMs });
  return {
    address: `127.0.0.1:${grpcPort}`,
    pid: child.pid,
    [Symbol.asyncDispose]: async () => {
      await child.stop('SIGTERM', stopTimeoutMs);
      await rm(logDir, { recursive: true, force: true });
    },
  };
}
