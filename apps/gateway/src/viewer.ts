import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { etagOf, makeOnce, type RenderedFile } from './rendered-files.ts';

/**
 * The script that shows the API document. Images contain it compressed. Otherwise it is made when it is first asked
 * for: it is a text of 5 MB in a module, of which only the compressed 1.4 MB are kept, so a process of its own loads
 * the module and ends; memory that a thread has used is not returned. All browsers accept gzip, so there is no other
 * encoding.
 */
export function loadViewer(): () => Promise<RenderedFile> {
  return makeOnce(readViewer);
}

const program = fileURLToPath(new URL('compress-viewer.ts', import.meta.url));

async function readViewer(): Promise<RenderedFile> {
  const gzip = await readFile(new URL('viewer.js.gz', import.meta.url)).catch(compressViewer);
  return { headers: { 'content-type': 'text/javascript; charset=utf-8', etag: etagOf(gzip) }, gzip };
}

async function compressViewer(): Promise<Buffer> {
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    encoding: 'buffer',
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  return stdout;
}
