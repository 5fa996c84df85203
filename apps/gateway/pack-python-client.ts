/**
 * Packs the source of the client for Python, for `pip install <file>`:
 * node apps/gateway/pack-python-client.ts <folder>
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create } from 'tar';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: node apps/gateway/pack-python-client.ts <folder>');
const file = join(folder, 'scheduling-client.tar.gz');
await create(
  {
    file,
    gzip: true,
    portable: true,
    cwd: fileURLToPath(new URL('../../clients/python', import.meta.url)),
    prefix: 'scheduling-client',
    filter: (path) => !path.endsWith('__pycache__'),
  },
  ['pyproject.toml', 'README.md', 'LICENSE', 'src', 'examples'],
);
process.stdout.write(`${file}\n`);
