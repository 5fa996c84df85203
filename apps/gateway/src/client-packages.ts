import type { FastifyInstance } from 'fastify';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RequestError } from './problem.ts';
import { makeOnce } from './rendered-files.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Each packs a client into a folder, and prints the name of the file first. */
const packers = {
  '/client.tgz': join(root, 'libs/client/pack.ts'),
  '/python-client.tar.gz': join(root, 'apps/gateway/pack-python-client.ts'),
};

/**
 * Serves the typed clients, for `npm install` and `pip install`, where the gateway runs from the repository: images do
 * not contain them. Each is packed when it is first asked for, which takes some seconds.
 */
export function serveClientPackages(app: FastifyInstance): void {
  for (const [path, packer] of Object.entries(packers)) {
    const packed = makeOnce(() => pack(packer));
    app.get(path, { schema: { hide: true } }, async (_request, reply) => {
      if (!existsSync(packer)) throw new RequestError('route.not_found');
      return reply.type('application/gzip').send(await packed());
    });
  }
}

async function pack(packer: string): Promise<Buffer> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'scheduling-client-'));
  const path = [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  const { stdout } = await promisify(execFile)(process.execPath, [packer, folder.path], {
    env: { ...process.env, PATH: path },
  });
  return readFile(stdout.split('\n', 1)[0]!);
}
