// Plain JavaScript for the machine's own Node: a fresh clone has no node_modules, and so neither the project's Node nor
// anything else.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { constants as osConstants, tmpdir, userInfo } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inspectInstall } from './lockfile.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const modules = join(root, 'node_modules');
const projectNode = join(modules, '.bin', 'node');
const lockFile = join(root, 'package-lock.json');
/** npm's record of what it has installed. */
const installedFile = join(modules, '.package-lock.json');
const stampFile = join(modules, '.scheduling-install-stamp');
/**
 * What Node makes of the code, types stripped and compiled, is kept for all processes: those after the first start
 * faster.
 */
const compileCache = join(modules, '.cache', 'node');

const commands = {
  install: [],
  check: ['.ci/check.ts'],
  start: ['apps/local/src/main.ts'],
  dev: ['apps/local/src/main.ts', '--watch'],
  demo: ['apps/local/src/demo.ts'],
  admin: ['apps/local/src/admin.ts'],
  attack: ['apps/bench/src/attack/main.ts'],
  bench: ['apps/bench/src/main.ts'],
  faults: ['apps/faults/src/main.ts'],
  soak: ['apps/faults/src/soak/main.ts'],
  mails: ['apps/local/src/mails.ts'],
  'pack-client': ['libs/client/pack.ts'],
  postman: ['apps/local/src/postman.ts'],
  seed: ['apps/local/src/seed.ts'],
  'webhook-inbox': ['apps/local/src/webhook-inbox.ts'],
  test: ['node_modules/vitest/vitest.mjs', 'run', '--root', root],
};

/** Taken before an install, which may outlive the parent. */
const parent = process.ppid;

const parentPollMs = 1_000;
/** A Ctrl-C arrives twice within moments: from the terminal, and from npm, which passes it on. */
const sameSignalMs = 300;
const npmStopMs = 2_000;
const progressMs = process.stderr.isTTY ? 1_000 : 10_000;

await main(process.argv[2], process.argv.slice(3));

async function main(command, args) {
  const entry = Object.hasOwn(commands, command ?? '') ? commands[command] : undefined;
  if (!entry) return fail(`usage: node apps/local/bootstrap.mjs <${Object.keys(commands).join('|')}> [arguments]`, 2);
  if (!isInstalled()) await install();
  // CI runs all tests (vitest.config.ts).
  const settings = command === 'test' ? { TEST_SCOPE: 'services' } : {};
  if (command !== 'install') run([join(root, entry[0]), ...entry.slice(1), ...args], settings);
}

/**
 * Runs the project's own Node in a session of its own, passes signals on, and ends as it ends. The environment
 * overrides `settings`.
 */
function run(args, settings) {
  const path = [join(modules, '.bin'), process.env.PATH].filter(Boolean).join(delimiter);
  const child = spawn(projectNode, args, {
    stdio: 'inherit',
    detached: true,
    env: { NODE_COMPILE_CACHE: compileCache, ...settings, ...process.env, PATH: path },
  });
  child.once('error', (error) =>
    fail(`The project's Node does not start (${error.message}): remove node_modules and try again.`),
  );
  child.once('exit', (code, signal) => process.exit(signal ? 128 + osConstants.signals[signal] : code));

  let lastSignalAt = -sameSignalMs;
  const pass = (signal) => {
    if (performance.now() - lastSignalAt < sameSignalMs) return;
    lastSignalAt = performance.now();
    child.kill(signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => pass(signal));
  process.on('SIGHUP', () => pass('SIGTERM'));

  // Whoever kills npm with SIGKILL means this process too.
  const npm = findNpmAbove();
  const watch = setInterval(() => {
    if (process.ppid === parent && (npm === undefined || isAlive(npm))) return;
    clearInterval(watch);
    pass('SIGTERM');
  }, parentPollMs);
}

/**
 * The npm which runs this script, when it does so through a shell that stays in between and would not pass its end on.
 */
function findNpmAbove() {
  if (!process.env.npm_lifecycle_event) return undefined;
  const [parentOfParent, command] = describeProcess(parent);
  return / -c /.test(command) && parentOfParent > 1 ? parentOfParent : undefined;
}

/** The parent and the command line of a process; not every system has both /proc and ps. */
function describeProcess(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return [Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1]), command];
  } catch {
    const [, parent, command] =
      /^\s*(\d+)\s+(.*)/.exec(
        spawnSync('ps', ['-o', 'ppid=,command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '',
      ) ?? [];
    return [Number(parent ?? 0), command ?? ''];
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Installed by this script for the present lockfile, or by hand after the lockfile was last changed. */
function isInstalled() {
  if (!existsSync(projectNode)) return false;
  try {
    if (readFileSync(stampFile, 'utf8') === stamp()) return true;
  } catch {
    // No stamp: installed by hand.
  }
  try {
    return statSync(installedFile).mtimeMs >= statSync(lockFile).mtimeMs;
  } catch {
    return false;
  }
}

/** A clone that is also used inside a container needs other binaries there. */
function stamp() {
  return `${process.platform}-${process.arch} ${createHash('sha256').update(readFileSync(lockFile)).digest('hex')}\n`;
}

async function install() {
  const npm = findNpm();
  if (!npm) return fail('npm is missing: it comes with Node from nodejs.org, or as the package "npm" of your system.');
  const lock = await takeLock();
  process.on('exit', lock.release);
  linkNode();
  // Another command may have done it while this one waited for its turn.
  if (!isInstalled()) await runInstall(npm, lock);
  process.off('exit', lock.release);
  lock.release();
}

async function runInstall(npm, lock) {
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
  const what = 'installing the packages of package-lock.json (npm ci)';
  showProgress(`${what} …`);
  const progress = setInterval(() => showProgress(`${what} … ${seconds()} s`), progressMs);
  const { code, output } = await runNpm(
    npm,
    ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund'],
    lock,
  );
  clearInterval(progress);
  endProgress();
  if (code !== 0) {
    process.stderr.write(output);
    return fail(`npm ci failed with exit code ${code} after ${seconds()} s; its output is above.`);
  }
  linkNode();
  const { missing, unverified } = inspectInstall(root);
  if (missing.length > 0) {
    // The next command must not take this for a complete installation.
    rmSync(installedFile, { force: true });
    return fail(
      `npm ci did not install ${list(missing)}: the checksum in package-lock.json does not match, or the package could not be downloaded.`,
    );
  }
  if (unverified.length > 0) {
    process.stderr.write(
      `warning: package-lock.json has no checksum for ${list(unverified)} on this platform: the download was not verified against it\n`,
    );
  }
  if (spawnSync(projectNode, ['--version']).status !== 0) {
    return fail(
      "The project's Node does not run on this machine: package.json has one for Linux (with glibc) and macOS, on x64 and arm64.",
    );
  }
  writeFileSync(stampFile, stamp());
  process.stderr.write(`installed the packages in ${seconds()} s\n`);
}

/**
 * npm 10 links the program of only the first of several packages that have one of the same name, even if it belongs to
 * another platform.
 */
function linkNode() {
  if (existsSync(projectNode)) return;
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const name = Object.keys(optionalDependencies).find((name) => existsSync(join(modules, name, 'bin', 'node')));
  if (name === undefined) return;
  mkdirSync(dirname(projectNode), { recursive: true });
  rmSync(projectNode, { force: true });
  symlinkSync(join('..', name, 'bin', 'node'), projectNode);
}

/** The names of packages, from their folders. */
function list(paths) {
  return paths.map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)).join(', ');
}

/** Runs npm to its end. A signal ends npm first and then this process, so that no half of an install goes on alone. */
function runNpm([command, ...prefix], args, lock) {
  return new Promise((resolve) => {
    const child = spawn(command, [...prefix, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const stop = (signal) => {
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), npmStopMs);
      child.once('close', () => process.exit(128 + osConstants.signals[signal]));
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, stop);
    const end = (result) => {
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(signal, stop);
      resolve(result);
    };
    child.once('spawn', () => lock.share(child.pid));
    child.once('error', (error) => end({ code: 1, output: `${error.message}\n` }));
    child.once('close', (code) => end({ code, output }));
  });
}

/** The npm that runs this script, else the one on PATH. */
function findNpm() {
  const running = process.env.npm_execpath;
  if (running?.endsWith('.js') && existsSync(running)) return [process.execPath, running];
  const found = spawnSync('npm', ['--version']).status === 0;
  return found ? ['npm'] : undefined;
}

/**
 * One install at a time in one clone. The lock lies outside of node_modules, which npm ci removes; it counts for as
 * long as one of the processes that it names is alive: this script, and npm, which goes on when this script is killed.
 */
async function takeLock() {
  const clone = createHash('sha256').update(root).digest('hex').slice(0, 16);
  const file = join(tmpdir(), `scheduling-install-${userInfo().uid}-${clone}.lock`);
  for (let told = false; ; told = true) {
    try {
      writeFileSync(file, String(process.pid), { flag: constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY });
      return {
        share: (pid) => writeFileSync(file, `${process.pid} ${pid}`),
        release: () => rmSync(file, { force: true }),
      };
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (!lockIsHeld(file)) {
      rmSync(file, { force: true });
      continue;
    }
    if (!told) process.stderr.write('another command is installing the packages; waiting for it …\n');
    await delay(500);
  }
}

function lockIsHeld(file) {
  try {
    const owners = readFileSync(file, 'utf8').split(' ').map(Number).filter(Boolean);
    // An empty file was created this moment and gets its pid next.
    return owners.length > 0 ? owners.some(isAlive) : Date.now() - statSync(file).mtimeMs < 5_000;
  } catch {
    return false;
  }
}

function showProgress(text) {
  process.stderr.write(process.stderr.isTTY ? `\r\u001B[2K${text}` : `${text}\n`);
}

function endProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[2K');
}

function fail(message, code = 1) {
  endProgress();
  process.stderr.write(`${message}\n`);
  process.exit(code);
}
