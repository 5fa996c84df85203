import type { AuthenticateKeyResponse, Crm } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { parseScope, type Scope } from './key-scopes.ts';

/** Who a key belongs to. */
export interface Credentials {
  /** Identifies a key without revealing it. */
  keyHash: string;
  /** The first characters of the key, by which people tell keys apart. */
  keyPrefix: string;
  scope: Scope;
  /** Undefined: identity has an older version, which does not say it. */
  createdAt: Date | undefined;
  /** Undefined: never. */
  expiresAt: Date | undefined;
  crm: Crm;
}

/** A cache of the keys that this gateway has seen recently. */
export interface KeyRing {
  /**
   * Returns the owner of this key. Rejects with `key.missing`, `key.invalid`, or `service.unavailable` when identity
   * does not answer.
   */
  authenticate(key: string | undefined): Promise<Credentials>;
  /** Whether identity has known this key, even if it is not cached any more. */
  hasKnown(key: string | undefined): boolean;
  /** Evicts a key that was revoked. */
  forgetKey(hash: Uint8Array): void;
  /** Evicts the keys of a CRM whose settings changed. */
  forgetCrm(crmId: string): void;
  /** Evicts everything, because revocations may have been missed. */
  forgetAll(): void;
}

export interface KeyRingOptions {
  /** Asks identity. */
  lookUp: (keyHash: Buffer) => Promise<AuthenticateKeyResponse>;
  /** Whether revocations are currently being received. */
  hearsRevocations: () => boolean;
  /** Epoch milliseconds. */
  now: () => number;
}

interface Answer {
  /** Undefined: no such key. */
  owner: Omit<Credentials, 'keyHash'> | undefined;
  askedAtMs: number;
  believedUntilMs: number;
}

interface LookUp {
  answer: Promise<Answer>;
}

const maxKeys = 10_000;
const maxKeyLength = 512;
/** The longest time for which identity's answer is cached. */
const knownMs = 30_000;
const unknownMs = 5_000;
/** The same while revocations cannot be received: a revoked key must still stop working within 5 s. */
const deafMs = 4_000;

/**
 * Caches identity's answer about a key, by the key's hash. Concurrent look-ups of one key share one call; an answer
 * that was in flight when its key was evicted is not cached.
 */
export function createKeyRing({ lookUp, hearsRevocations, now }: KeyRingOptions): KeyRing {
  const answers = new LRUCache<string, Answer>({ max: maxKeys });
  const underWay = new Map<string, LookUp>();

  function remembered(keyHash: string): Answer | undefined {
    const answer = answers.get(keyHash);
    if (answer === undefined || now() >= answer.believedUntilMs) return undefined;
    return hearsRevocations() || now() < answer.askedAtMs + deafMs ? answer : undefined;
  }

  function ask(keyHash: string, hash: Buffer): Promise<Answer> {
    const known = underWay.get(keyHash);
    if (known !== undefined) return known.answer;
    const started: LookUp = { answer: fetchAnswer(hash) };
    underWay.set(keyHash, started);
    const finish = (answer?: Answer): void => {
      if (underWay.get(keyHash) !== started) return;
      underWay.delete(keyHash);
      if (answer !== undefined) answers.set(keyHash, answer);
    };
    started.answer.then(finish, () => finish());
    return started.answer;
  }

  async function fetchAnswer(hash: Buffer): Promise<Answer> {
    const askedAtMs = now();
    try {
      const { crm, keyPrefix, createdAt, expiresAt, ...answer } = await lookUp(hash);
      const scope = parseScope(answer.scope);
      const expiresAtMs = expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      return {
        // A scope that this gateway does not know cannot be enforced.
        owner: crm && scope && { crm, keyPrefix, scope, createdAt, expiresAt },
        askedAtMs,
        believedUntilMs: Math.min(askedAtMs + knownMs, expiresAtMs),
      };
    } catch (error) {
      if (!(error instanceof DomainError) || error.category !== 'unauthenticated') throw error;
      return { owner: undefined, askedAtMs, believedUntilMs: askedAtMs + unknownMs };
    }
  }

  return {
    authenticate: async (key) => {
      if (key === undefined || key === '') throw new DomainError('key.missing');
      if (key.length > maxKeyLength) throw new DomainError('key.invalid');
      const hash = hashOf(key);
      const keyHash = hash.toString('base64');
      const { owner } = remembered(keyHash) ?? (await ask(keyHash, hash));
      if (owner === undefined) throw new DomainError('key.invalid');
      return { keyHash, ...owner };
    },
    hasKnown: (key = '') =>
      key !== '' && key.length <= maxKeyLength && answers.get(hashOf(key).toString('base64'))?.owner !== undefined,
    forgetKey: (hash) => {
      const keyHash = Buffer.from(hash).toString('base64');
      underWay.delete(keyHash);
      answers.delete(keyHash);
    },
    forgetCrm: (crmId) => {
      underWay.clear();
      for (const [keyHash, { owner }] of answers.entries()) if (owner?.crm.crmId === crmId) answers.delete(keyHash);
    },
    forgetAll: () => {
      underWay.clear();
      answers.clear();
    },
  };
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
