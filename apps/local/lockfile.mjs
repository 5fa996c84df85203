// Plain JavaScript, as bootstrap.mjs, which needs it before the project's Node is there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Compares what npm has installed with package-lock.json, as far as it is meant for this machine. npm verifies the
 * checksums, but without a word it leaves out an optional package whose checksum does not match, and trusts the
 * registry for a package that has none.
 *
 * `missing`: not installed, or not in the locked version. `unverified`: locked without a checksum. `unknown`:
 * installed, but not in the lockfile.
 */
export function inspectInstall(root) {
  const locked = readPackages(join(root, 'package-lock.json'));
  const installed = readPackages(join(root, 'node_modules', '.package-lock.json'));
  const machine = { os: process.platform, cpu: process.arch, libc: findLibc() };
  const wanted = Object.keys(locked).filter((path) => isFor(machine, locked, path));
  return {
    missing: wanted.filter((path) => !isSame(locked[path], installed[path])),
    unverified: wanted.filter((path) => !locked[path].integrity),
    unknown: Object.keys(installed).filter((path) => !locked[path]),
  };
}

/** By their folders. The workspaces and the links to them are ours. */
function readPackages(file) {
  const { packages } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { packages: {} };
  return Object.fromEntries(
    Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link),
  );
}

/** Only Linux has a choice of them. */
function findLibc() {
  if (process.platform !== 'linux') return undefined;
  return process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}

/** A package in the folder of another one is needed by that one only, and not installed without it. */
function isFor(machine, locked, path) {
  const fits = ['os', 'cpu', 'libc'].every((what) => allows(locked[path][what], machine[what]));
  const parent = path.slice(0, path.lastIndexOf('/node_modules/'));
  return fits && (locked[parent] === undefined || isFor(machine, locked, parent));
}

/** npm copies what the package says: a list, or a single name. */
function allows(names, name) {
  return names === undefined || [names].flat().includes(name);
}

function isSame(locked, installed) {
  return installed?.version === locked.version && (!locked.integrity || installed.integrity === locked.integrity);
}
