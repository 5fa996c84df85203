import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { etagOf, type RenderedFile } from './rendered-files.ts';

/**
 * The script that shows the API document, made when it is first asked for. It is a text of 5 MB in a module of 5 MB, of which only the compressed 1.4 MB are kept:
 * a process of its own loads the module and ends, because memory that a thread has used is not returned. All browsers accept gzip, so there is no other encoding.
 */
export function loadViewer(): () => Promise<RenderedFile> {
  let loaded: Promise<RenderedFile> | undefined;
  return () => {
    loaded ??= compressViewer().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

const program = fileURLToPath(new URL('compress-viewer.ts', import.meta.url));

async function compressViewer(): Promise<RenderedFile> {
  const { stdout: gzip } = await promisify(execFile)(process.execPath, [program], { encoding: 'buffer', maxBuffer: Number.POSITIVE_INFINITY });
  return { headers: { 'content-type': 'text/javascript; charset=utf-8', etag: etagOf(gzip) }, gzip };
}
