import { Provider } from '@scheduling/contracts/identity/v1';
import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import { storeProvider } from '../src/provider/provider-copy.ts';

let database: Database<CalendarSchema>;
beforeAll(async () => {
  const logger = testLogger('provider-copies-test');
  const url = await createMigratedDatabase('calendar', migrateCalendarDatabase);
  database = createDatabase<CalendarSchema>({ url, applicationName: 'test', logger, ...longTimeout });
});
afterAll(() => database?.[Symbol.asyncDispose]());

const copyOf = (id: string, version: number) =>
  Provider.fromPartial({ id, reference: `provider-${id}`, timeZone: 'Europe/Berlin', version });
const stored = (id: string) => database.kysely.selectFrom('provider').select('version').where('id', '=', id).execute();

it('a provider that arrives in concurrent requests and events is stored once, in its newest version', async () => {
  for (let round = 0; round < 50; round += 1) {
    const id = randomUUID();
    await Promise.all(
      [1, 2, 1, 2, 2, 1, 1, 2].map((version) => storeProvider(database.kysely, 'crm', copyOf(id, version))),
    );
    expect(await stored(id)).toEqual([{ version: 2 }]);
  }
});
