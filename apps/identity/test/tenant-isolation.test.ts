import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, invite } from './scenario.ts';

const crmId = 'two';
const absent = '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77';

let service: IdentityUnderTest;
let foreign: { provider: string; verification: string };

/**
 * Calls that name a CRM's resource and are not reachable through any gateway route; those of the routes are tested over
 * HTTP.
 */
const calls: [
  method: keyof typeof IdentityServiceService,
  kind: keyof typeof foreign,
  call: (id: string) => Promise<unknown>,
][] = [
  ['getProvider', 'provider', (value) => service.identity.getProvider({ crmId, key: { $case: 'id', value } })],
  [
    'issueVerificationToken',
    'verification',
    (verificationId) => service.identity.issueVerificationToken({ crmId, verificationId }),
  ],
];

beforeAll(async () => {
  service = await startIdentity();
  for (const each of ['one', crmId]) {
    await service.admin.createCrm({ crmId: each });
    await createProvider(service, each);
  }
  await invite(service, 'one', 'foreign');
  await createUser(service, 'one', 'foreign');
  const { provider } = await service.identity.getProvider({
    crmId: 'one',
    key: { $case: 'reference', value: 'provider@crm' },
  });
  const verification = await service.database.kysely
    .selectFrom('emailVerification')
    .select('id')
    .executeTakeFirstOrThrow();
  foreign = { provider: provider!.id, verification: verification.id };
});
afterAll(() => service[Symbol.asyncDispose]());

describe('what belongs to another CRM', () => {
  it.each(calls)('does not exist for %s by the id of a %s, and nothing changes', async (_method, kind, call) => {
    const before = await everything();
    const ofForeign = await refusal(call(foreign[kind]));
    expect(ofForeign).toEqual(await refusal(call(absent)));
    expect(ofForeign.category).toBe('not_found');
    expect(await everything()).toBe(before);
  });
});

/** All rows of all tables, except the relay's own records. */
async function everything(): Promise<string> {
  const tables = ['crm', 'app_user', 'account', 'provider', 'provider_staff', 'email_verification'];
  const contents = await Promise.all(
    tables.map((table) => sql`SELECT * FROM ${sql.table(table)} AS t ORDER BY t`.execute(service.database.kysely)),
  );
  const outbox = await service.database.kysely.selectFrom('outbox').select('id').orderBy('id').execute();
  return JSON.stringify([...contents.map(({ rows }) => rows), outbox]);
}
