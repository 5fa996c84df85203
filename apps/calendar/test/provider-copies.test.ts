import { Provider } from '@scheduling/contracts/identity/v1';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { storeProvider } from '../src/provider/provider-copy.ts';
import { type CalendarUnderTest, startCalendar } from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

const copyOf = (id: string, version: number) => Provider.fromPartial({ id, reference: `provider-${id}`, timeZone: 'Europe/Berlin', version });
const stored = (id: string) => calendar.database.kysely.selectFrom('provider').select('version').where('id', '=', id).execute();

it('a provider that requests and events bring at once is stored once, in its newest version', async () => {
  for (let round = 0; round < 50; round += 1) {
    const id = randomUUID();
    await Promise.all([1, 2, 1, 2, 2, 1, 1, 2].map((version) => storeProvider(calendar.database.kysely, 'crm', copyOf(id, version))));
    expect(await stored(id)).toEqual([{ version: 2 }]);
  }
});
