import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { clientTypes, clientTypesFile } from './client-types.ts';

it('has written the types of the client from this API document (node apps/gateway/write-client-types.ts)', async () => {
  expect(await readFile(clientTypesFile, 'utf8')).toBe(await clientTypes());
});
