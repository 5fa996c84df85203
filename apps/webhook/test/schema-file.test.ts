import { createTestDatabase, describeSchema, testLogger } from '@scheduling/testing';
import { expect, it } from 'vitest';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';

/** After a change of the schema: npx vitest run apps/webhook/test/schema-file --update */
it('src/db/schema.sql matches what the migrations create', async () => {
  const url = await createTestDatabase();
  await migrateWebhookDatabase(url, testLogger('schema-file-test'));
  await expect(await describeSchema(url)).toMatchFileSnapshot('../src/db/schema.sql');
});
