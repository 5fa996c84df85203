import fc from 'fast-check';
import { type RawBuilder, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectAccountPart } from '../src/account/list-accounts.ts';
import { requireCrm } from '../src/crm/get-crm.ts';
import { selectProviderPart } from '../src/provider/list-providers.ts';
import { selectUserPart } from '../src/user/list-users.ts';
import { type IdentityUnderTest, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, insertUsers, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
});
afterAll(() => service[Symbol.asyncDispose]());

interface Query {
  email?: string;
  ownerReference?: string;
  accountReference?: string;
  limit?: number;
  cursor?: string | undefined;
}
interface Part {
  references: (string | undefined)[];
  nextCursor?: string | undefined;
}

/** The messages of each list. */
const lists = {
  users: async function* (crmId: string, query: Query): AsyncGenerator<Part> {
    for await (const { users, nextCursor } of service.identity.listUsers({ crmId, ...query }))
      yield { references: users.map(({ reference }) => reference), nextCursor };
  },
  accounts: async function* (crmId: string, query: Query): AsyncGenerator<Part> {
    for await (const { accounts, nextCursor } of service.identity.listAccounts({ crmId, ...query }))
      yield { references: accounts.map(({ accountReference }) => accountReference), nextCursor };
  },
  providers: async function* (crmId: string, query: Query): AsyncGenerator<Part> {
    for await (const { providers, nextCursor } of service.identity.listProviders({ crmId, ...query }))
      yield { references: providers.map(({ reference }) => reference), nextCursor };
  },
};
type Kind = keyof typeof lists;
const kinds = Object.keys(lists) as Kind[];

async function list(kind: Kind, crmId: string, query: Query = {}): Promise<(string | undefined)[]> {
  return (await Array.fromAsync(lists[kind](crmId, query))).flatMap(({ references }) => references);
}

async function readPage(kind: Kind, crmId: string, query: Query): Promise<Part> {
  const parts = await Array.fromAsync(lists[kind](crmId, query));
  return { references: parts.flatMap(({ references }) => references), nextCursor: parts.at(-1)!.nextCursor };
}

const createAccount = (crmId: string, accountReference: string, ownerReference = 'owner@crm') =>
  service.identity.createAccount({ crmId, account: { accountReference, ownerReference, branch: 'misc' } });
const addProvider = (crmId: string, reference: string, owner = 'owner@crm', account = 'account@crm') =>
  service.identity.createProvider({
    crmId,
    reference,
    ownerReference: owner,
    accountReference: account,
    name: reference,
  });

describe('the lists of a CRM', () => {
  beforeAll(async () => {
    for (const crmId of ['one', 'two']) {
      await service.admin.createCrm({ crmId });
      await createProvider(service, crmId);
    }
    await createUser(service, 'one', 'second');
    await invite(service, 'one', 'invited');
    await createAccount('one', 'other@crm', 'second@crm');
    await addProvider('one', 'of-second@crm', 'second@crm');
    await addProvider('one', 'of-other@crm', 'owner@crm', 'other@crm');
  });

  it('have everything of the CRM in the order of creation, and nothing of another one', async () => {
    expect(await list('users', 'one')).toEqual(['owner@crm', 'second@crm', undefined]);
    expect(await list('accounts', 'one')).toEqual(['account@crm', 'other@crm']);
    expect(await list('providers', 'one')).toEqual(['provider@crm', 'of-second@crm', 'of-other@crm']);
    expect(await list('users', 'two')).toEqual(['owner@crm']);
    expect(await list('accounts', 'two')).toEqual(['account@crm']);
    expect(await list('providers', 'two')).toEqual(['provider@crm']);
  });

  it('show the same as the request for one', async () => {
    const [{ users }] = (await Array.fromAsync(service.identity.listUsers({ crmId: 'one' }))) as [{ users: unknown[] }];
    const { user } = await service.identity.getUser({ crmId: 'one', reference: 'owner@crm' });
    expect(users[0]).toEqual(user);
    const [{ accounts }] = (await Array.fromAsync(service.identity.listAccounts({ crmId: 'one' }))) as [
      { accounts: unknown[] },
    ];
    const { account } = await service.identity.getAccount({ crmId: 'one', reference: 'account@crm' });
    expect(accounts[0]).toEqual(account);
    const [{ providers }] = (await Array.fromAsync(service.identity.listProviders({ crmId: 'one' }))) as [
      { providers: unknown[] },
    ];
    const { provider } = await service.identity.getProvider({
      crmId: 'one',
      key: { $case: 'reference', value: 'provider@crm' },
    });
    expect(providers[0]).toEqual(provider);
  });

  it.each<[Kind, Query, (string | undefined)[]]>([
    ['users', { email: 'SECOND@one.example' }, ['second@crm']],
    ['users', { email: 'invited@one.example' }, [undefined]],
    ['users', { email: 'second@two.example' }, []],
    ['users', { email: 'one.example' }, []],
    ['accounts', { ownerReference: 'second@crm' }, ['other@crm']],
    ['accounts', { ownerReference: 'nobody@crm' }, []],
    ['providers', { ownerReference: 'owner@crm' }, ['provider@crm', 'of-other@crm']],
    ['providers', { accountReference: 'account@crm' }, ['provider@crm', 'of-second@crm']],
    ['providers', { ownerReference: 'owner@crm', accountReference: 'account@crm' }, ['provider@crm']],
    ['providers', { ownerReference: 'owner@crm', accountReference: 'nothing@crm' }, []],
    ['providers', { ownerReference: 'nobody@crm', accountReference: 'account@crm' }, []],
  ])('of %s with %j are what matches', async (kind, query, expected) => {
    expect(await list(kind, 'one', query)).toEqual(expected);
    expect(await list(kind, 'one', { ...query, limit: 1 })).toEqual(expected.slice(0, 1));
  });

  it.each(kinds)('of %s reject a cursor that is none', async (kind) => {
    for (const cursor of ['', 'made-up', Buffer.from('made-up').toString('base64url')])
      await expect(list(kind, 'one', { cursor })).rejects.toMatchObject({
        category: 'invalid',
        code: `${kind.slice(0, -1)}.invalid`,
        errors: [{ pointer: '/cursor' }],
      });
  });

  it('of a sandbox find its own address only', async () => {
    await service.admin.createCrm({ crmId: 'box', sandbox: true });
    await service.identity.createUser({
      crmId: 'box',
      reference: 'boxed@crm',
      email: 'second@one.example',
      username: 'boxed',
      lastName: 'B',
    });
    expect(await list('users', 'box', { email: 'second@one.example' })).toEqual(['boxed@crm']);
    expect(await list('users', 'one', { email: 'second@one.example' })).toEqual(['second@crm']);
  });
});

describe('pages', () => {
  it('have everything exactly once that is there all the time, whatever is created and deleted meanwhile', async () => {
    let crms = 0;
    const change = fc.record({ deleted: fc.array(fc.nat(99), { maxLength: 3 }), created: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 12 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), change), { minLength: 1, maxLength: 8 }),
        async (count, steps) => {
          const crmId = `paged-${(crms += 1)}`;
          await service.admin.createCrm({ crmId });
          const created: string[] = [];
          const gone = new Set<string>();
          const create = async () => {
            const name = `u${created.length}`;
            await createUser(service, crmId, name);
            created.push(`${name}@crm`);
          };
          for (let index = 0; index < count; index += 1) await create();
          const seen: string[] = [];
          let cursor: string | undefined;
          for (let step = 0; ; step += 1) {
            const [limit, { deleted, created: more }] = steps[step % steps.length]!;
            const page = await readPage('users', crmId, { limit, cursor });
            expect(page.references.length).toBeLessThanOrEqual(limit);
            seen.push(...(page.references as string[]));
            cursor = page.nextCursor;
            if (cursor === undefined) break;
            for (const index of deleted) {
              const reference = created[index];
              if (reference === undefined || gone.has(reference)) continue;
              await service.identity.deleteUser({ crmId, reference });
              gone.add(reference);
            }
            // At most as many as the pages take, so that the list ends.
            for (let index = 0; index < Math.min(more, limit - 1); index += 1) await create();
          }
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(created.filter((reference) => seen.includes(reference)));
          const missed = created.filter((reference) => !seen.includes(reference) && !gone.has(reference));
          expect(missed).toEqual([]);
        },
      ),
      { numRuns: 25 },
    );
  }, 120_000);

  it('of a long list arrive in messages of bounded size', async () => {
    await service.admin.createCrm({ crmId: 'long' });
    await insertUsers(service, 'long', { local: 'l', domain: 'long.example', first: 1, count: 603 });
    const parts = await Array.fromAsync(lists.users('long', {}));
    expect(parts.map(({ references }) => references.length)).toEqual([250, 250, 103]);
    for (const limit of [250, 400, 603, 1_000]) {
      const pages: Part[] = [];
      do pages.push(await readPage('users', 'long', { limit, cursor: pages.at(-1)?.nextCursor }));
      while (pages.at(-1)!.nextCursor !== undefined);
      expect(pages.map(({ references }) => references.length)).toEqual(
        limit >= 603 ? [603] : limit === 400 ? [400, 203] : [250, 250, 103],
      );
      expect(new Set(pages.flatMap(({ references }) => references)).size).toBe(603);
    }
  });

  it('are read by an index, whatever the filter is', async () => {
    const { kysely } = service.database;
    await sql`
      INSERT INTO account (crm_id, reference, owner_id, branch)
      SELECT 'long', 'a' || n || id, id, 'misc' FROM generate_series(1, 20) AS n, app_user WHERE crm_id = 'long'`.execute(
      kysely,
    );
    await sql`
      INSERT INTO provider (crm_id, reference, owner_id, account_id, name, time_zone)
      SELECT 'long', reference, owner_id, id, 'P', 'UTC' FROM account WHERE crm_id = 'long'`.execute(kysely);
    await sql`
      INSERT INTO provider (crm_id, reference, owner_id, account_id, name, time_zone)
      SELECT 'two', 'p' || n, owner_id, id, 'P', 'UTC' FROM generate_series(1, 10000) AS n, account WHERE crm_id = 'two'`.execute(
      kysely,
    );
    await sql`ANALYZE`.execute(kysely);
    const crm = await requireCrm(kysely, 'long');
    const some = { crmId: 'long', after: '00000000-0000-0000-0000-000000000001', count: 101 };
    const someone = '00000000-0000-0000-0000-000000000002';
    const plan = async (query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
      const { sql: text, parameters } = query.compile();
      const parts = text.split(/\$\d+/);
      const explained = parts.reduce<RawBuilder<unknown>>(
        (all, part, index) =>
          index === 0 ? sql`${sql.raw(part)}` : sql`${all}${sql.lit(parameters[index - 1])}${sql.raw(part)}`,
        sql``,
      );
      return JSON.stringify((await sql`EXPLAIN ${explained}`.execute(kysely)).rows);
    };
    expect(await plan(selectUserPart(kysely, { ...some, address: undefined }))).toContain('app_user_pkey');
    expect(await plan(selectUserPart(kysely, { ...some, address: { crm, email: 'l7@long.example' } }))).toContain(
      'app_user_by_address',
    );
    expect(await plan(selectAccountPart(kysely, { ...some, ownerId: undefined }))).toContain('account_pkey');
    expect(await plan(selectAccountPart(kysely, { ...some, ownerId: someone }))).toContain('account_by_owner');
    const ofProvider = { ...some, ownerId: undefined, accountId: undefined };
    expect(await plan(selectProviderPart(kysely, ofProvider))).not.toMatch(/Seq Scan on provider|Sort/);
    expect(await plan(selectProviderPart(kysely, { ...ofProvider, ownerId: someone }))).toContain('provider_by_owner');
    expect(await plan(selectProviderPart(kysely, { ...ofProvider, accountId: someone }))).toContain(
      'provider_by_account',
    );
  });
});
