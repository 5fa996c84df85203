import { waitUntil } from '@scheduling/embedded';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import type { Place } from '@scheduling/test-stack/api-document';
import { type Answer, apiDocument, path } from '@scheduling/test-stack/client';
import {
  createCrm,
  createTimeslot,
  expectCreated,
  newAppointment,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { type Names, namesOf, queryParameters, withNames } from './isolation/foreign-names.ts';
import { cases, newReference, type Request, sendRequest, type World } from './isolation/operation-cases.ts';
import { snapshot, waitUntilQuiet } from './isolation/snapshot.ts';
import { createWorld } from './isolation/world.ts';

/**
 * What an address names comes from the address alone: a body or a query that names something else, in the terms of the
 * API or of the messages between the services, is answered byte for byte as one that does not. Two CRMs with the same
 * history send the same requests in the same order, and only the attacker adds names.
 */

const document = await apiDocument();

/** A CRM with two providers. */
interface Party {
  crm: TestCrm;
  practice: Practice;
  own: World;
  sibling: World;
  siblingId: string;
  /** What nobody uses, so it can be deleted. */
  unused: { timeslot: string; account: string; provider: string };
}

let control: Party;
let attacker: Party;
let foreignCrm: TestCrm;
let foreign: World;
/** The rows of the victims before all requests. */
let untouched: string;

beforeAll(async () => {
  [control, attacker] = [await createParty(), await createParty()];
  foreignCrm = await createCrm({ sandbox: true });
  foreign = (await createWorld(foreignCrm)).world;
  await waitUntilQuiet([control.crm, attacker.crm, foreignCrm]);
  for (const party of [control, attacker]) await untilErased(party);
  untouched = await rowsOfVictims();
});

async function createParty(): Promise<Party> {
  const crm = await createCrm({ sandbox: true });
  const { practice, world } = await createWorld(crm);
  const unused = await createUnused(crm, practice, world);
  const { world: sibling } = await createWorld(crm);
  const { body } = await crm.get<{ provider: { uuid: string } }>(path`/provider/${sibling.provider}`);
  return { crm, practice, own: world, sibling, siblingId: body.provider.uuid, unused };
}

async function createUnused(crm: TestCrm, practice: Practice, own: World): Promise<Party['unused']> {
  const timeslot = await createTimeslot(practice, { start: '2031-06-01T09:00', end: '2031-06-01T10:00' });
  const [account, provider] = [newReference(), newReference()];
  const ownerReference = own.user;
  await expectCreated(crm.post('/account', { ownerReference, accountReference: account, branch: 'misc' }));
  await expectCreated(
    crm.post('/provider', { ownerReference, accountReference: own.account, reference: provider, name: 'Unused' }),
  );
  return { timeslot, account, provider };
}

/** Until then the response says which services have confirmed it. */
function untilErased({ crm, own }: Party): Promise<unknown> {
  const isComplete = async () =>
    (await crm.get<{ erasure: { completedAt: string | null } }>(path`/erasures/${own.erasure}`)).body.erasure
      .completedAt !== null;
  return waitUntil(isComplete, { what: 'the erasure of the setup', timeoutMs: 60_000, intervalMs: 100 });
}

type RequestOf = (party: Party) => Request;

/** Other kinds of bodies than those of the cases. */
const otherBodies: Record<string, RequestOf[]> = {
  createAppointment: [
    ({ own, practice }) => {
      const { reference: _reference, start: _start, end: _end, ...series } = newAppointment(practice);
      return {
        path: { providerRef: own.provider },
        query: {},
        body: { ...series, series_data: { from: '2031-07-01T09:00', to: '2031-07-01T10:00', raster: 30 } },
      };
    },
  ],
  addStaff: [
    ({ own }) => ({
      path: { providerRef: own.provider },
      query: {},
      body: { email: `${unique('i')}@test.example`, username: unique('i'), lastName: 'Invited' },
    }),
  ],
  createBooking: [({ own }) => cases['createBooking']!.alternatives!['body.customerReference']!(own)],
};

/** Instead of those of the cases, which somebody uses by then. */
const deletions: Record<string, RequestOf> = {
  deleteTimeslot: ({ own, unused }) => ({
    path: { providerRef: own.provider, timeslotRef: unused.timeslot },
    query: {},
  }),
  deleteAccount: ({ unused }) => ({ path: { reference: unused.account }, query: {} }),
  deleteProvider: ({ unused }) => ({ path: { reference: unused.provider }, query: {} }),
};

function requestsOf(operationId: string): RequestOf[] {
  const deletion = deletions[operationId];
  if (deletion !== undefined) return [deletion];
  return [({ own, practice }) => cases[operationId]!.request(own, practice), ...(otherBodies[operationId] ?? [])];
}

/** Reading comes first, because events and mails arrive later than the change that causes them, and removing last. */
const methods = ['get', 'post', 'put', 'delete'];
/**
 * These change what others need: the state of the participation, the reference of the customer, the time zone, the
 * access of the staff, the customer of the invitation.
 */
const lateOperations = [
  'changeBooking',
  'updateParticipation',
  'updateCustomer',
  'updateProvider',
  'deleteUser',
  'deleteCustomer',
];
/** Its repetition depends on whether the copy has been sent meanwhile. */
const sentOnce = 'resendMail';

const attempts = document.places
  .toSorted((a, b) => rankOf(a) - rankOf(b))
  .flatMap((place) => {
    const { operationId } = place.operation;
    return requestsOf(operationId).map((requestOf, index) => ({
      title: index === 0 ? operationId : `${operationId}, other body`,
      place,
      requestOf,
    }));
  });

function rankOf({ method, operation }: Place): number {
  const late = lateOperations.indexOf(operation.operationId) + 1;
  return methods.indexOf(method === 'delete' || late === 0 ? method : 'put') * 10 + late;
}

describe.each(someOf(attempts))('$title', ({ place, requestOf }) => {
  it('takes what its address names from the address alone', async () => {
    const [expected, attempted] = [requestOf(control), requestOf(attacker)];
    const first = await send(control, place, expected);
    expect([200, 201, 202, 204], first.text).toContain(first.status);
    const everything = withNames(place, attempted, namesOf(foreign, foreignCrm));
    expect(shown(attacker, place, await send(attacker, place, everything)), 'everything of another CRM').toEqual(
      shown(control, place, first),
    );
    if (place.operation.operationId !== sentOnce) {
      const again = shown(control, place, await send(control, place, expected));
      for (const { what, request } of attacks(place, attempted)) {
        expect(shown(attacker, place, await send(attacker, place, request)), what).toEqual(again);
      }
    }
    expect(await rowsOfVictims()).toEqual(untouched);
    if (place.operation.operationId === 'updateCustomer') renameCustomers([expected, attempted]);
  });
});

describe('the victims', () => {
  it('are as they were before, also when events and mails have been processed', async () => {
    await waitUntilQuiet([attacker.crm, foreignCrm]);
    expect(await rowsOfVictims()).toEqual(untouched);
  });
});

function renameCustomers(requests: Request[]): void {
  for (const [index, party] of [control, attacker].entries())
    party.own.customer = requests[index]!.body!['customerReference'] as string;
}

/**
 * A webhook is tested by one request at a time, and none of them counts for the next ones, because the service rejects
 * those beyond its limits. The tokens of links are replaced by what they name.
 */
async function send({ crm, own }: Party, place: Place, request: Request): Promise<Answer> {
  const answer = await sendRequest(crm, place, request);
  if (withLinks.has(place.operation.operationId)) return withReadableLinks(answer);
  if (place.operation.operationId !== 'testWebhook' || answer.status !== 202) return answer;
  const { eventId } = (answer.body as { test: { eventId: string } }).test;
  const isOver = async () =>
    (await crm.get<{ eventId: string }[]>(path`/webhooks/${own.webhook}/attempts`)).body.some(
      (attempt) => attempt.eventId === eventId,
    );
  await waitUntil(isOver, { what: 'the attempt', timeoutMs: 30_000, intervalMs: 20 });
  await query('webhook', 'DELETE FROM webhook_test WHERE crm_id = $1', [crm.crmId]);
  return answer;
}

const withLinks = new Set(['getParticipationLink', 'createInvitation', 'listInvitations']);

async function withReadableLinks(answer: Answer): Promise<Answer> {
  let { text } = answer;
  for (const [token] of text.matchAll(/(?<=\/booking\/|\?for=)[\w-]+/g))
    text = text.replace(token, JSON.stringify(await readLink(token)));
  return { ...answer, text };
}

/** What the token of a link names: a participation or an invitation. */
async function readLink(token: string): Promise<unknown> {
  const bytes = Buffer.from(token, 'base64url');
  // After the purpose and the id of the key, which begins with its length.
  const idAt = 2 + bytes[1]!;
  const named = await query(
    'calendar',
    `SELECT crm_id, reference FROM participation WHERE id = $1
      UNION ALL SELECT crm_id, product_reference FROM invitation WHERE id = $1`,
    [bytes.toString('hex', idAt, idAt + 16)],
  );
  return named[0];
}

/** The request with names of victims. */
function attacks(place: Place, request: Request): { what: string; request: Request }[] {
  return [...bundles(), ...singleNames()].map(([what, names]) => ({ what, request: withNames(place, request, names) }));
}

/** All names for something of a victim. */
function bundles(): [string, Names][] {
  const all = namesOf(foreign, foreignCrm);
  const samples = fc.sample(fc.subarray(Object.keys(all)), { seed: 1, numRuns: 3 });
  return [
    ['everything of another provider', namesOf(attacker.sibling, attacker.crm)],
    ...samples.map((names, index): [string, Names] => [
      `sample ${index} of another CRM`,
      Object.fromEntries(names.map((name) => [name, all[name]])),
    ]),
  ];
}

/** Each name of an address by itself, in the terms of the API and of the messages. */
function singleNames(): [string, Names][] {
  const [ofForeign, ofSibling] = [namesOf(foreign, foreignCrm), namesOf(attacker.sibling, attacker.crm)];
  const inPaths = new Set(
    document.places.flatMap(({ path }) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)),
  );
  const names = [...inPaths].flatMap((name) => [...new Set([name, name.replace(/Ref$/, 'Reference')])]);
  return names.map((name) => [name, { [name]: (name === 'crmId' ? ofForeign : ofSibling)[name] }]);
}

/**
 * Everything that a caller can see of a response, with what differs between the two CRMs replaced by what it means.
 * Events of different things arrive in the feed in any order.
 */
function shown({ crm, own, sibling }: Party, place: Place, { status, headers, text }: Answer): unknown {
  const labels = Object.entries({ own, sibling, foreign }).flatMap(([whose, world]) =>
    Object.entries(world).map(([kind, value]) => [uniqueIn(value), `${whose} ${kind}`] as const),
  );
  const crms = Object.entries({ own: crm, foreign: foreignCrm }).flatMap(([whose, { crmId, key }]) => [
    [uniqueIn(crmId), `${whose} crm`] as const,
    [key.slice(0, keyPrefixLength), `${whose} key`] as const,
  ]);
  const meant = (each: string): string =>
    [...crms, ...labels]
      // The lines of a calendar file are folded.
      .reduce((result, [value, label]) => result.replaceAll(value, label), each.replaceAll(String.raw`\r\n `, ''))
      .replaceAll(/(?<=\/calendar\/)[\w-]{43}/g, 'secret')
      .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'uuid')
      .replaceAll(/[\da-f]{12}/g, 'unique')
      .replaceAll(/whsec_[\w+/=]+/g, 'secret')
      // What happens now; everything else is in 2031.
      .replaceAll(/20[23]\d-?\d\d-?\d\dT\d\d:?\d\d:?\d\d(?:\.\d{3})?Z/g, (time) =>
        time.startsWith('2031') ? time : 'now',
      )
      // The last of so many days from today.
      .replaceAll(/"madeUntil":"[\d-]{10}"/g, 'day')
      .replaceAll(/"durationMs":\d+/g, 'duration');
  const visible = [...headers]
    .filter(([name]) => !notCompared.has(name))
    .map(([name, value]) => `${name}: ${meant(name === 'link' ? withoutUnknown(place, value) : value)}`);
  const inOrder =
    place.operation.operationId === 'listEvents'
      ? JSON.stringify((JSON.parse(text) as unknown[]).map((event) => meant(JSON.stringify(event))).sort())
      : meant(text);
  return { status, headers: visible.sort(), text: inOrder };
}

/** The text itself is compared, and the time has nothing to do with names. */
const notCompared = new Set(['content-length', 'date', 'retry-after']);
/** By which people tell keys apart. */
const keyPrefixLength = 12;

/** The address of the next page repeats the query of the request, with what has no meaning in it. */
function withoutUnknown(place: Place, link: string): string {
  const url = new URL(/<(.+)>/.exec(link)![1]!);
  const known = [...url.searchParams].filter(([name]) => queryParameters(place).includes(name));
  return `${url.origin}${url.pathname}?${String(new URLSearchParams(known))}`;
}

/** The part of a reference that `unique` has made, because an address encodes the rest; an id as it is. */
function uniqueIn(value: string): string {
  return /^[a-z-]+-([\da-f]{12})(?:@|$)/.exec(value)?.[1] ?? value;
}

/** All rows of the foreign CRM, and those of the other provider of the attacker's CRM. */
async function rowsOfVictims(): Promise<string> {
  const { webhook: _ofCrm, ...ofProvider } = attacker.sibling;
  const [ofForeign, ofAttacker] = [await snapshot([foreignCrm]), await snapshot([attacker.crm])];
  const names = [attacker.siblingId, ...Object.values(ofProvider)];
  const ofSibling = Object.values(ofAttacker)
    .flat()
    .filter((row) => names.some((name) => row.includes(name)));
  return JSON.stringify([ofForeign, ofSibling], null, 1);
}
