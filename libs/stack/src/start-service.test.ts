import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repositoryRoot } from './repository-root.ts';
import { nodeArguments } from './start-service.ts';

it('services run with the arguments of their image, and the image contains code that was compiled with them', async () => {
  const dockerfile = await readFile(join(repositoryRoot, 'deploy/Dockerfile'), 'utf8');
  expect(dockerfile).toContain(
    `ENTRYPOINT ${JSON.stringify(['node', ...nodeArguments, 'src/main.ts']).replaceAll(',', ', ')}\n`,
  );
  expect(dockerfile).toContain(`NODE_COMPILE_CACHE=/tmp/compiled node ${nodeArguments.join(' ')} src/main.ts\n`);
});
