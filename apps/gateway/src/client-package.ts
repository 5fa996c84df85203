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
const program = join(root, 'libs/client/pack.ts');

/**
 * Serves the typed client at `/client.tgz`, for `npm install`, where the gateway runs from the repository: images do not
 * contain it. It is packed when it is first asked for, which takes some seconds.
 */
export function serveClientPackage(app: FastifyInstance): void {
  const packed = makeOnce(pack);
  app.get('/client.tgz', { schema: { hide: true } }, async (_request, reply) => {
    if (!existsSync(program)) throw new RequestError('route.not_found');
    return reply.type('application/gzip').send(await packed());
  });
}

async function pack(): Promise<Buffer> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'scheduling-client-'));
  const path = [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  const { stdout } = await promisify(execFile)(process.execPath, [program, folder.path], {
    env: { ...process.env, PATH: path },
  });
  return readFile(stdout.split('\n', 1)[0]!);
}
