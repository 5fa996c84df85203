import { expect, it } from 'vitest';
import { chooseServers } from './choose-servers.ts';

it('uses embedded servers by default', async () => {
  expect(await chooseServers(undefined)).toBe('embedded');
  expect(await chooseServers('')).toBe('embedded');
});

it('rejects an unknown value of TEST_WITH', async () => {
  await expect(chooseServers('container')).rejects.toThrow('TEST_WITH may be "containers", not "container"');
});
