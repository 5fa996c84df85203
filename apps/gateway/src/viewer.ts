import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { etagOf, type RenderedFile } from './rendered-files.ts';

/**
 * The script that shows the API document, loaded when it is first asked for. It is 5 MB in a module of 5 MB, of which only the compressed 1.4 MB are kept: a thread
 * of its own loads the module and ends. All browsers accept gzip, so there is no other encoding.
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

async function compressViewer(): Promise<RenderedFile> {
  const worker = new Worker(new URL('compress-viewer.ts', import.meta.url));
  const [message] = (await once(worker, 'message')) as [Uint8Array];
  const gzip = Buffer.from(message);
  return { headers: { 'content-type': 'text/javascript; charset=utf-8', etag: etagOf(gzip) }, gzip };
}
