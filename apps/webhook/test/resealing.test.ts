import { createDatabase } from '@scheduling/postgres';
import { parseNamedKeys } from '@scheduling/runtime';
import { createMigratedDatabase, eventually, longTimeout, newNamedKey, testLogger } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';
import type { WebhookSchema } from '../src/db/schema.ts';
import { createSealer } from '../src/webhook/seal.ts';
import { startResealing } from '../src/webhook/start-resealing.ts';
import { secretContext } from '../src/webhook/webhook.ts';

const logger = testLogger('webhook');

it('secrets are sealed again with a new key, so that the previous one can be removed, also beside some that cannot be opened', async () => {
  const [old, current] = [newNamedKey('old'), newNamedKey('new')];
  const before = createSealer(parseNamedKeys(old)!);
  const url = await createMigratedDatabase('webhook', migrateWebhookDatabase);
  await using database = createDatabase<WebhookSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  const webhooks = Array.from({ length: 150 }, (_, index) => ({
    crmId: 'crm',
    id: randomUUID(),
    hasTwo: index % 2 === 0,
  }));
  const lost = createSealer(parseNamedKeys(newNamedKey('lost'))!);
  const inAnHour = new Date(Date.now() + 3_600_000);
  const rows = webhooks.map(({ crmId, id, hasTwo }, index) => ({
    crmId,
    id,
    reference: id,
    url: 'https://crm.example/',
    types: [],
    ignoreActors: [],
    position: 0,
    // Some cannot be opened any more.
    secret: (index % 3 === 0 ? lost : before).seal(`secret of ${id}`, secretContext({ crmId, id })),
    previousSecret: hasTwo ? before.seal(`previous of ${id}`, secretContext({ crmId, id })) : null,
    previousSecretUntil: hasTwo ? (index < 75 ? new Date() : inAnHour) : null,
  }));
  await database.kysely.insertInto('webhook').values(rows).execute();
  await using _resealing = startResealing({
    database,
    sealer: createSealer(parseNamedKeys(`${current},${old}`)!),
    logger,
  });
  const after = createSealer(parseNamedKeys(current)!);
  await eventually(async () => {
    const found = await database.kysely.selectFrom('webhook').selectAll().execute();
    for (const row of found.filter(({ secret }) => !secret.startsWith(lost.prefix))) {
      expect(after.open(row.secret, secretContext(row))).toBe(`secret of ${row.id}`);
      if (row.previousSecret !== null)
        expect(after.open(row.previousSecret, secretContext(row))).toBe(`previous of ${row.id}`);
    }
    expect(found.filter(({ secret }) => secret.startsWith(lost.prefix))).toHaveLength(50);
    // Those that sign no more are deleted.
    expect(found.filter(({ previousSecret }) => previousSecret !== null)).toHaveLength(37);
  });
});
