import type { CreateUserRequest, CreateUserResponse } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { addressKey } from '@scheduling/runtime';
import { patiently } from '@scheduling/testing';
import { randomInt } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UserRow } from '../src/user/user.ts';
import { type IdentityUnderTest, recordedEvents, startIdentity } from './identity-under-test.ts';
import { insertDerived } from './scenario.ts';

/** Of each kind; each run has other ones. Without the locks on the login names every kind fails within these. */
const rounds = Number(process.env['RACE_ROUNDS'] ?? 5);
const seed = Number(process.env['RACE_SEED'] ?? randomInt(2 ** 31));
const requestsPerRound = 20;
const random = createRandom(seed);

type Request = Pick<CreateUserRequest, 'crmId' | 'reference' | 'email' | 'username' | 'lastName'>;

type Answer = { request: Request } & ({ response: CreateUserResponse } | { refused: string });

// Seven kinds of race, several times each, in an order and with pauses determined by the seed.
describe(`twenty requests at once (RACE_SEED=${seed})`, () => {
  let service: IdentityUnderTest;
  let round = 0;

  beforeAll(async () => {
    service = await startIdentity();
    await service.admin.createCrm({ crmId: 'one' });
    await service.admin.createCrm({ crmId: 'two' });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('for the same reference: one creates, the others get the same user', async () => {
    await eachRound(async (name) => {
      const answers = await race(
        requests((index) => ({
          reference: `${name}@crm`,
          email: distinctAddress(name, index),
          username: `${name}-${index}`,
        })),
      );
      const responses = successes(answers);
      expect(responses).toHaveLength(requestsPerRound);
      expect(responses.filter(({ created }) => created)).toHaveLength(1);
      expect(new Set(responses.map(({ user }) => JSON.stringify({ ...user, lastName: '' }))).size).toBe(1);
      expect(await countUsers(name)).toBe(1);
    });
  }, 60_000);

  it('for the same e-mail, in two CRMs: all create, with the address and nineteen derived ones', async () => {
    await eachRound(async (name) => {
      const answers = await race(
        requests((index) => ({
          crmId: index % 2 === 0 ? 'one' : 'two',
          reference: `${name}-${index}@crm`,
          email: [`${name}X@bücher.example`, `${name}x@BÜCHER.example`, `${name}x@xn--bcher-kva.example`][index % 3]!,
          username: `${name}-${index}`,
        })),
      );
      const responses = successes(answers);
      expect(responses.filter(({ created }) => created)).toHaveLength(requestsPerRound);
      const suffixes = responses.map(({ user }) => Number(/x(\d*)@/i.exec(user!.email)![1]));
      expect(suffixes.sort((a, b) => a - b)).toEqual(Array.from({ length: requestsPerRound }, (_, index) => index));
    });
  }, 60_000);

  it('for the last derived addresses of a CRM: it gets no more than these, and another CRM all that it asks for', async () => {
    await eachRound(async (name) => {
      const email = `${name}x@x.example`;
      await service.identity.createUser({
        crmId: 'two',
        reference: `${name}-own@crm`,
        email,
        username: `${name}-own`,
        lastName: 'Own',
      });
      await insertDerived(service, 'one', { local: `${name}x`, domain: 'x.example', first: 1, count: 995 });
      const answers = await race(
        requests((index) => ({
          crmId: index % 2 === 0 ? 'one' : 'two',
          reference: `${name}-${index}@crm`,
          email,
          username: `${name}-${index}`,
        })),
      );
      const created = successes(answers).map(({ user }) => Number(/x(\d*)@/.exec(user!.email)![1]));
      expect(created.sort((a, b) => a - b)).toEqual(Array.from({ length: 15 }, (_, index) => 996 + index));
      expect(answers.filter((answer) => 'refused' in answer).map(({ request }) => request.crmId)).toEqual(
        Array.from({ length: 5 }, () => 'one'),
      );
      expect(new Set(refusals(answers))).toEqual(new Set(['user.email_taken']));
    });
  }, 60_000);

  it('for an address and its derived ones: all create, each with a different address', async () => {
    await eachRound(async (name) => {
      const answers = await race(
        requests((index) => ({
          reference: `${name}-${index}@crm`,
          email: `${name}x${pick(['', '', '1', '2', '11'])}@x.example`,
          username: `${name}-${index}`,
        })),
      );
      const responses = successes(answers);
      expect(responses.filter(({ created }) => created)).toHaveLength(requestsPerRound);
      expect(new Set(responses.map(({ user }) => user?.email)).size).toBe(requestsPerRound);
    });
  }, 60_000);

  it('for the same username, in two CRMs: one creates, the others are rejected', async () => {
    await eachRound(async (name) => {
      const answers = await race(
        requests((index) => ({
          crmId: index % 2 === 0 ? 'one' : 'two',
          reference: `${name}-${index}@crm`,
          email: distinctAddress(name, index),
          username: [`${name}Ä`, `${name}ä`, `${name}ä\u200B`][index % 3]!,
        })),
      );
      expect(successes(answers).map(({ created }) => created)).toEqual([true]);
      expect(refusals(answers)).toEqual(Array.from({ length: requestsPerRound - 1 }, () => 'user.username_taken'));
      expect(await countUsers(name)).toBe(1);
    });
  }, 60_000);

  it('for an invited person: one takes it over, with one verification, the others get derived addresses', async () => {
    await service.identity.createUser({
      crmId: 'one',
      reference: 'owner@crm',
      email: 'owner@x.example',
      username: 'owner',
      lastName: 'Owner',
    });
    const account = { accountReference: 'account@crm', ownerReference: 'owner@crm', branch: 'misc' };
    await service.identity.createAccount({ crmId: 'one', account });
    await service.identity.createProvider({
      crmId: 'one',
      reference: 'provider@crm',
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Provider',
    });
    await eachRound(async (name) => {
      const email = `${name}x@x.example`;
      const { user: invited } = await service.identity.addStaff({
        crmId: 'one',
        providerReference: 'provider@crm',
        member: { $case: 'invitation', value: { email, username: `${name}-invited`, lastName: 'Invited' } },
      });
      const before = (await recordedEvents(service.database, events.emailVerificationRequested)).length;
      const answers = await race(
        requests((index) => ({ reference: `${name}-${index}@crm`, email, username: `${name}-${index}` })),
      );
      const responses = successes(answers);
      expect(responses).toHaveLength(requestsPerRound);
      const adopted = responses.filter(({ created }) => !created);
      expect(adopted.map(({ user }) => user?.id)).toEqual([invited?.id]);
      expect(new Set(responses.map(({ user }) => user?.email)).size).toBe(requestsPerRound);
      expect(await recordedEvents(service.database, events.emailVerificationRequested)).toHaveLength(before + 1);
    });
  }, 60_000);

  it('for any mixture of them: every answer follows from a rule', async () => {
    await eachRound(async (name) => {
      const answers = await race(
        requests(() => ({
          crmId: pick(['one', 'two']),
          reference: `${name}-${pick([1, 2, 3, 4, 5])}@crm`,
          // Includes addresses that are also derived ones of another request.
          email: `${name}-x${pick(['', '', '1', '2', '11'])}@${pick(['bücher', 'xn--bcher-kva'])}.example`,
          username: `${name}-${pick(['u', 'U', 'u ', 'v', 'w', 'x', 'y', 'z', '1', '2', '3', '4'])}`,
        })),
      );
      expect(new Set(refusals(answers)).difference(new Set(['user.username_taken']))).toEqual(new Set());
      await expectConsistent(name, answers);
    });
  }, 60_000);

  it('cause no deadlock', async () => {
    expect(await service.countDeadlocks()).toBe(0);
  });

  async function eachRound(play: (name: string) => Promise<void>): Promise<void> {
    for (let played = 0; played < rounds; played += 1) {
      round += 1;
      await play(`round${round}r`);
    }
  }

  /**
   * Sends all in a random order, over both replicas, some a few turns of the event loop later. Twenty may be more than
   * a busy machine begins in time; what it has not begun is repeated. A deadlock looks the same, and is counted at the
   * end.
   */
  function race(all: Request[]): Promise<Answer[]> {
    return Promise.all(
      shuffle(all).map(async (request) => {
        const replica = pick([service.identity, service.otherReplica]);
        for (let turns = pick([0, 0, 1, 3, 10, 30]); turns > 0; turns -= 1) await turn();
        try {
          return { request, response: await patiently(() => replica.createUser(request)) };
        } catch (error) {
          if (!(error instanceof DomainError)) throw error;
          return { request, refused: error.code };
        }
      }),
    );
  }

  async function countUsers(name: string): Promise<number> {
    const rows = await service.database.kysely
      .selectFrom('appUser')
      .select('id')
      .where('usernameKey', 'like', `${name}%`)
      .execute();
    return rows.length;
  }

  async function expectConsistent(name: string, answers: Answer[]): Promise<void> {
    const users = await service.database.kysely
      .selectFrom('appUser')
      .selectAll()
      .where('usernameKey', 'like', `${name}%`)
      .execute();
    expect(new Set(users.map((user) => addressKey(user.email))).size).toBe(users.length);
    expect(new Set(users.map((user) => asRead(user.username))).size).toBe(users.length);
    expect(new Set(users.map((user) => `${user.crmId} ${user.reference}`)).size).toBe(users.length);
    expect(successes(answers).filter(({ created }) => created)).toHaveLength(users.length);
    expect(answers.filter((answer) => !agrees(answer, users))).toEqual([]);
  }
});

/** As people read the usernames of these races. */
function asRead(username: string): string {
  return username.trim().toLowerCase();
}

/** The answer is the stored user with this reference, or a rejection because another user has the name. */
function agrees(answer: Answer, users: UserRow[]): boolean {
  const { request } = answer;
  const stored = users.find((user) => user.crmId === request.crmId && user.reference === request.reference);
  if ('refused' in answer) {
    const holder = users.find((user) => asRead(user.username) === asRead(request.username));
    return holder !== undefined && holder.id !== stored?.id;
  }
  const { user } = answer.response;
  return (
    user !== undefined && user.id === stored?.id && user.email === stored.email && user.username === stored.username
  );
}

function requests(
  make: (index: number) => Partial<Request> & Pick<Request, 'reference' | 'email' | 'username'>,
): Request[] {
  return Array.from({ length: requestsPerRound }, (_, index) => ({
    crmId: 'one',
    lastName: `Name ${index}`,
    ...make(index),
  }));
}

/**
 * Addresses without digits, so that they have nothing in common: no lock on an address compensates for a missing one.
 */
function distinctAddress(name: string, index: number): string {
  return `${name}-${String.fromCodePoint('a'.codePointAt(0)! + index)}@x.example`;
}

function successes(answers: Answer[]): CreateUserResponse[] {
  return answers.flatMap((answer) => ('response' in answer ? [answer.response] : []));
}

function refusals(answers: Answer[]): string[] {
  return answers.flatMap((answer) => ('refused' in answer ? [answer.refused] : []));
}

function pick<T>(values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

function shuffle<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value);
}

/** Mulberry32: a failing run can be repeated with its seed. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = Math.trunc(state + 0x6d_2b_79_f5);
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
