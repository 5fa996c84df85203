import { expect, it } from 'vitest';
import { chooseServers } from './choose-servers.ts';

it('takes embedded servers unless it is told otherwise', async () => {
  expect(await chooseServers(undefined)).toBe('embedded');
  expect(await chooseServers('')).toBe('embedded');
});

it('refuses to guess what a misspelled TEST_WITH means', async () => {
  await expect(chooseServers('container')).rejects.toThrow('TEST_WITH may be "containers", not "container"');
});
