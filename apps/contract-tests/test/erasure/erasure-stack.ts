import { waitUntil } from '@scheduling/embedded';
import { startTestSmtp, type TestSmtp } from '@scheduling/testing';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import {
  createCrm,
  createPractice,
  newAppointment,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { readFeed } from '../feed.ts';
import { startTestStack, type TestStack } from '@scheduling/test-stack/start-test-stack';
import { waitForErasures } from '../wait-for-erasures.ts';

/** Promised by the interface: complete within a minute after everything runs again. */
export const completionMs = 60_000;
export const past = { start: '2020-03-03T09:00', end: '2020-03-03T10:00' };

/**
 * The stack that the tests of erasures share: its mails go to a server of the tests, and its logs say everything, so that
 * they can be searched, too.
 */
export let stack: TestStack;
export let smtp: TestSmtp;
export let crm: TestCrm;

/** Starts it before the tests of a file, and has each test begin with services that work. */
export function useErasureStack(): void {
  const resources = new AsyncDisposableStack();
  let probe: Practice;

  beforeAll(async () => {
    smtp = resources.use(await startTestSmtp());
    stack = resources.use(await startTestStack({ SMTP_URL: smtp.url, LOG_LEVEL: 'debug' }));
    crm = await createCrm({}, stack.info);
    probe = await createPractice(crm);
  }, 400_000);
  afterAll(() => resources.disposeAsync());

  /** Waits until everything that an earlier test killed is running again. */
  beforeEach(async () => {
    const works = async () => {
      const answers = await Promise.all([
        crm.get(`${probe.at}/appointments`),
        crm.get(path`/provider/${probe.provider}/customers/${probe.customer}`),
      ]);
      return answers.every(({ status }) => status === 200);
    };
    await waitUntil(works, { what: 'the services to answer', timeoutMs: 60_000, intervalMs: 100 });
  });
}

/** A person whose every field contains one unique word. */
export async function createCanary(practice: Practice): Promise<{ word: string; reference: string; email: string }> {
  const word = unique('canary').replace('-', '');
  const reference = `${word}@test`;
  const email = `${word}@customers.example`;
  const answer = await crm.post(`${practice.at}/customers`, {
    customerReference: reference,
    providerReference: practice.provider,
    userName: `Name ${word}`,
    email,
    mobile: `+49 ${word}`,
    note: `Note ${word}`,
    language: 'en',
    metadata: { [word.slice(0, 40)]: `Metadata ${word}` },
  });
  expect(answer.status).toBe(201);
  return { word, reference, email };
}

export const mailsTo = (email: string) => smtp.mails.filter(({ recipients }) => recipients.includes(email));

export const waitForCompletion = () => waitForErasures(stack.info, completionMs);

export async function everyRead(practice: Practice, customerReference: string): Promise<string> {
  const answers = await Promise.all([
    crm.get(path`/provider/${practice.provider}/customers/${customerReference}`),
    crm.get(`${practice.at}/appointments`, { query: { includeArchived: true } }),
    crm.get(`${practice.at}/appointments`, { query: { includeArchived: true, limit: 100 } }),
    crm.get(path`/provider/${practice.provider}/resource/${practice.resource}/timeslots`, {
      query: { from: '2019-01-01T00:00', to: '2039-01-01T00:00' },
    }),
    crm.get(`${practice.at}/staff`),
    crm.get(path`/user/${practice.owner}`),
    crm.get(path`/account/${practice.account}`),
    crm.get(path`/provider/${practice.provider}`),
  ]);
  return [...answers.map(({ text }) => text), JSON.stringify(await readFeed(crm, { limit: '1000' }))].join('\n');
}

/** interface 4.8. */
export interface Erasure {
  id: string;
  requestedAt: string;
  completedAt: string | null;
  confirmed: string[];
  awaiting: string[];
}

export const findErasure = async (id: string): Promise<Erasure> =>
  (await crm.get<{ erasure: Erasure }>(path`/erasures/${id}`)).body.erasure;

export const requestErasure = async (email: string, owner = crm): Promise<Erasure> => {
  const { status, text, body } = await owner.post<{ erasure: Erasure }>(
    '/erasures',
    { email },
    { headers: { 'idempotency-key': unique('erasure') } },
  );
  expect(status, text).toBe(202);
  return body.erasure;
};

export const waitUntilComplete = (id: string) =>
  waitUntil(async () => (await findErasure(id)).completedAt !== null, {
    what: 'the erasure of the address',
    timeoutMs: completionMs,
    intervalMs: 100,
  });

/** Somebody who was embedded in an appointment; every field contains the word. */
export async function embed(
  practice: Practice,
  word: string,
  fields: Record<string, unknown> = {},
): Promise<{ appointment: string; participation: string }> {
  const participation = unique(word);
  const person = {
    reference: participation,
    name: `Name ${word}`,
    email: `${word}@customers.example`,
    mobile: word,
    note: word,
    state: 'BOOKED',
    metadata: { word },
  };
  const request = newAppointment(practice, { capacity: 2, participations: [person], ...fields });
  const { status, text } = await practice.crm.post(`${practice.at}/appointments`, request, {
    headers: { 'idempotency-key': unique(word) },
  });
  expect(status, text).toBe(201);
  return { appointment: request['reference'] as string, participation };
}
