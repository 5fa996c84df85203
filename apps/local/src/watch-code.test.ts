import type { Service } from '@scheduling/stack';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { watchCode } from './watch-code.ts';

it('reports the service whose code changed, all of them for a lib, and no test', async () => {
  await using root = await mkdtempDisposable(join(tmpdir(), 'scheduling-watch-'));
  for (const folder of ['apps/calendar/src/slot', 'apps/calendar/test', 'libs/rpc/src'])
    await mkdir(join(root.path, folder), { recursive: true });
  const reports: Service[][] = [];
  let arrived = Promise.withResolvers<void>();
  const nextReport = async (): Promise<Service[]> => {
    await arrived.promise;
    arrived = Promise.withResolvers();
    return reports.shift()!;
  };
  const stop = new AbortController();
  const watching = watchCode(root.path, (changed) => (reports.push(changed), arrived.resolve()), stop.signal);

  await writeFile(join(root.path, 'apps/calendar/test/slots.test.ts'), '');
  await writeFile(join(root.path, 'apps/calendar/src/slot/read-slots.sql'), '');
  expect(await nextReport()).toEqual(['calendar']);
  await writeFile(join(root.path, 'libs/rpc/src/client.ts'), '');
  expect(await nextReport()).toEqual([
    'identity',
    'calendar',
    'customer',
    'notification',
    'webhook',
    'gateway',
    'page',
  ]);
  stop.abort();
  await watching;
  expect(reports).toEqual([]);
});
