import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repositoryRoot } from './config.ts';
import { collection } from './start-services.ts';

it('services run with the arguments of their image, and the image contains code that was compiled with them', async () => {
  const dockerfile = await readFile(join(repositoryRoot, 'deploy/Dockerfile'), 'utf8');
  expect(dockerfile).toContain(`ENTRYPOINT ${JSON.stringify(['node', ...collection, 'src/main.ts']).replaceAll(',', ', ')}\n`);
  expect(dockerfile).toContain(`NODE_COMPILE_CACHE=/tmp/compiled node ${collection.join(' ')} src/main.ts\n`);
});
