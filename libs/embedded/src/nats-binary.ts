import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { setGlobalProxyFromEnv } from 'node:http';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The release to download if the machine has none. */
const version = '2.12.15';
/** The oldest release whose JetStream is compatible with the messaging library. */
const oldestVersion = [2, 9, 10] as const;

/**
 * SHA-256 of `nats-server-v<version>-<platform>.tar.gz`, of the archives verified when the version was chosen. On other
 * platforms, including macOS, the release's own SHA256SUMS is used: that detects a damaged download, but not a replaced
 * release.
 */
const checksums: Record<string, string> = {
  'linux-amd64': '58ab8131f819263897e2fc38e503e1b755b63bcafeecc7d12582487df48ca15e',
  'linux-arm64': 'b724db99fefbf8f5c808baa82819ee50350aee9734017e4a478f7e545cef3ab6',
  'linux-386': 'e20fd919512273ed8ee553f5076bd76b1fc5e78a3cf83eafed4e0b40582f9b87',
  'linux-arm7': '72311fe4e14ce3ce22dc8e7ac02633e6f31a9bab4086c92a31fd040e59683c8a',
  'linux-s390x': '5db960be875da499f1354f41c0a7780303fb9644cf62d35022677e77b4178029',
  'linux-ppc64le': '56447e72ec0551fa27a4368388dee475e028d4d5de6d97a802d944c6f278cf1e',
};

const releaseUrl = `https://github.com/nats-io/nats-server/releases/download/v${version}`;
/** A machine without internet access must move on quickly. */
const connectTimeoutMs = 5_000;
const transferTimeoutMs = 180_000;
const aptTimeoutMs = 120_000;

export interface FindOptions {
  /** Used instead of the user's cache folder if that is not writable. */
  fallbackCacheDir: string;
  log?: (message: string) => void;
}

/**
 * The path of a nats-server: the one on PATH, else the one downloaded earlier, else the pinned release from GitHub,
 * else the package of Debian or Ubuntu (unpacked, not installed). Rejects with one message that names what was tried
 * and the remedy.
 */
export async function findNatsServer({ fallbackCacheDir, log = () => {} }: FindOptions): Promise<string> {
  const faults: string[] = [];
  const installed = await findOnPath(process.env.PATH ?? '');
  if (installed) {
    if (await isUsable(installed)) return installed;
    faults.push(`${installed} does not run or is older than ${oldestVersion.join('.')}`);
  }

  const cacheDir = await writableCacheDir(fallbackCacheDir);
  const sources = [
    { name: 'GitHub', file: join(cacheDir, `nats-server-${version}-${releasePlatform()}`), fetch: fetchRelease },
    ...(process.platform === 'linux'
      ? [
          {
            name: 'the package of Debian or Ubuntu',
            file: join(cacheDir, `nats-server-debian-${process.arch}`),
            fetch: fetchDebianPackage,
          },
        ]
      : []),
  ];
  for (const { file } of sources) if (await isUsable(file)) return file;
  for (const [index, { name, file, fetch }] of sources.entries()) {
    const workDir = await mkdtemp(join(cacheDir, 'fetch-'));
    try {
      const fetched = await fetch(workDir, log);
      await chmod(fetched, 0o755);
      if (!(await isUsable(fetched))) throw new Error('the downloaded program does not run here');
      // The rename is atomic, even if two commands download it at the same time.
      await rename(fetched, file);
      return file;
    } catch (error) {
      const reason = describe(error);
      faults.push(`${name}: ${reason}`);
      const next = sources[index + 1];
      if (next) log(`${name} is not available here (${reason}); using ${next.name} instead`);
    } finally {
      await rm(workDir, { recursive: true, force: true });
    }
  }
  throw new Error(
    `nats-server is not installed and could not be downloaded (${faults.join('; ')}). ` +
      `Install nats-server ${oldestVersion.join('.')} or newer and put it on the PATH, or set NATS_URL to a server with JetStream.`,
  );
}

async function fetchRelease(workDir: string, log: (message: string) => void): Promise<string> {
  const name = `nats-server-v${version}-${releasePlatform()}`;
  log(`downloading nats-server ${version} from GitHub`);
  const archive = await throughProxy(async () => {
    const bytes = await download(`${releaseUrl}/${name}.tar.gz`);
    const checksum = createHash('sha256').update(bytes).digest('hex');
    if (checksum !== (await expectedChecksum(`${name}.tar.gz`)))
      throw new Error(`the SHA-256 of ${name}.tar.gz is ${checksum}, which is not the expected one`);
    return bytes;
  });
  await writeFile(join(workDir, 'release.tar.gz'), archive);
  await run('tar', ['-xzf', 'release.tar.gz'], { cwd: workDir });
  return join(workDir, name, 'nats-server');
}

/**
 * Uses the proxy in the environment while `use` runs, but not for the servers on this machine, whose readiness is
 * polled at the same time.
 */
async function throughProxy<T>(use: () => Promise<T>): Promise<T> {
  const { https_proxy, HTTPS_PROXY, no_proxy, NO_PROXY } = process.env;
  const direct = [no_proxy || NO_PROXY, '127.0.0.1'].filter(Boolean);
  const restore = setGlobalProxyFromEnv({ https_proxy: https_proxy || HTTPS_PROXY, no_proxy: direct.join() });
  try {
    return await use();
  } finally {
    restore();
  }
}

async function expectedChecksum(fileName: string): Promise<string | undefined> {
  const pinned = checksums[releasePlatform()];
  if (pinned) return pinned;
  const list = (await download(`${releaseUrl}/SHA256SUMS`)).toString('utf8');
  const line = list.split('\n').find((entry) => entry.trim().endsWith(fileName));
  return line?.trim().split(/\s+/)[0];
}

async function download(url: string): Promise<Buffer> {
  const abort = new AbortController();
  const connectTimer = setTimeout(
    () => abort.abort(new Error(`no response within ${connectTimeoutMs} ms`)),
    connectTimeoutMs,
  );
  const response = await fetch(url, {
    signal: AbortSignal.any([abort.signal, AbortSignal.timeout(transferTimeoutMs)]),
  });
  clearTimeout(connectTimer);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return Buffer.from(await response.arrayBuffer());
}

async function fetchDebianPackage(workDir: string, log: (message: string) => void): Promise<string> {
  log('downloading nats-server with apt-get');
  await downloadPackage(workDir, []).catch(async () => {
    // The package lists of a fresh container are empty. Private ones need no root and leave the machine unchanged.
    const options = ['-o', `Dir::State::Lists=${join(workDir, 'lists')}`, '-o', `Dir::Cache=${join(workDir, 'cache')}`];
    for (const folder of ['lists/partial', 'cache/archives/partial'])
      await mkdir(join(workDir, folder), { recursive: true });
    log('downloading the package lists first');
    await apt(workDir, [...options, 'update']);
    await downloadPackage(workDir, options);
  });
  const archive = (await readdir(workDir)).find((file) => file.endsWith('.deb'));
  if (!archive) throw new Error('apt-get downloaded no package');
  await run('dpkg', ['-x', archive, 'package'], { cwd: workDir });
  return (
    (await findOnPath(['usr/sbin', 'usr/bin'].map((folder) => join(workDir, 'package', folder)).join(delimiter))) ??
    'nats-server'
  );
}

async function downloadPackage(workDir: string, options: string[]): Promise<void> {
  await apt(workDir, [...options, 'download', 'nats-server']);
}

async function apt(workDir: string, args: string[]): Promise<void> {
  const { PATH, HOME, http_proxy, HTTP_PROXY, https_proxy, HTTPS_PROXY, no_proxy, NO_PROXY } = process.env;
  // apt-get reads the proxy variables in lower case only.
  const proxies = {
    http_proxy: http_proxy || HTTP_PROXY,
    https_proxy: https_proxy || HTTPS_PROXY,
    no_proxy: no_proxy || NO_PROXY,
  };
  const environment = { PATH, HOME, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive', ...proxies };
  const settings = [
    '-q',
    '-o',
    'APT::Sandbox::User=root',
    '-o',
    'Acquire::Retries=1',
    '-o',
    'Acquire::http::Timeout=10',
  ];
  await run('apt-get', [...settings, ...args], { cwd: workDir, env: environment, timeout: aptTimeoutMs });
}

async function findOnPath(path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    const file = join(folder, 'nats-server');
    const isExecutable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return file;
  }
  return undefined;
}

async function isUsable(file: string): Promise<boolean> {
  const result = await run(file, ['--version'], { timeout: 10_000 }).catch(() => undefined);
  const found = /v(\d+)\.(\d+)\.(\d+)/
    .exec(result?.stdout ?? '')
    ?.slice(1)
    .map(Number);
  if (!found) return false;
  const difference = found.map((part, index) => part - oldestVersion[index]!).find((part) => part !== 0) ?? 0;
  return difference >= 0;
}

/** The user's cache folder outlives clones and data folders; if it is not writable, the fallback is used. */
async function writableCacheDir(fallback: string): Promise<string> {
  const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'scheduling');
  try {
    await mkdir(cacheDir, { recursive: true });
    await access(cacheDir, constants.W_OK);
    return cacheDir;
  } catch {
    await mkdir(fallback, { recursive: true });
    return fallback;
  }
}

function releasePlatform(): string {
  const architectures: Record<string, string> = { x64: 'amd64', ia32: '386', arm: 'arm7', ppc64: 'ppc64le' };
  return `${process.platform}-${architectures[process.arch] ?? process.arch}`;
}

/** A failed download has its reason in the cause, or in the cause's cause; a failed command in its output. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return describe(error.cause);
  const printed = (error as { stderr?: string }).stderr?.trim().split('\n').at(-1);
  return printed || error.message;
}
