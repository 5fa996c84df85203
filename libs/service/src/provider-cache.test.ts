import { expect, it } from 'vitest';
import { createProviderCache } from './provider-cache.ts';

it('remembers what was read of a provider until it is read again, and not that there is none', async () => {
  const rows = new Map([['one studio', 'first']]);
  const cache = createProviderCache(async ({ crmId, providerReference }) => {
    const row = rows.get(`${crmId} ${providerReference}`);
    if (row === undefined) throw new Error('there is no such provider');
    return row;
  });
  const studio = { crmId: 'one', providerReference: 'studio' };
  const other = { crmId: 'two', providerReference: 'studio' };
  expect(cache.get(studio)).toBeUndefined();
  expect(await cache.refresh(studio)).toBe('first');
  rows.set('one studio', 'second');
  expect(cache.get(studio)).toBe('first');
  expect(await cache.refresh(studio)).toBe('second');
  expect(cache.get(studio)).toBe('second');
  await expect(cache.refresh(other)).rejects.toThrow('there is no such provider');
  expect(cache.get(other)).toBeUndefined();
  rows.set('two studio', 'third');
  expect(await cache.refresh(other)).toBe('third');
});
