import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import type { Place } from '@scheduling/test-stack/api-document';
import { type Answer, apiDocument, type Problem } from '@scheduling/test-stack/client';
import { createCrm, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { cases, type Request, sendRequest, type World } from './isolation/operation-cases.ts';
import { waitUntilQuiet } from './isolation/snapshot.ts';
import { createWorld } from './isolation/world.ts';

/**
 * Whatever a client sends as a cursor is rejected, or lists nothing but what the list has without it (interface 1,
 * Responses).
 */

const { places } = await apiDocument();
const lists = places.flatMap((place) => {
  const parameter = place.operation.parameters?.find(
    ({ name, in: part }) => part === 'query' && (name === 'cursor' || name === 'after'),
  )?.name;
  return parameter === undefined ? [] : [{ place, parameter, operationId: place.operation.operationId }];
});

let crm: TestCrm;
let practice: Practice;
let world: World;
beforeAll(async () => {
  crm = await createCrm({ sandbox: true });
  ({ practice, world } = await createWorld(crm));
  await waitUntilQuiet([crm]);
});

/** More requests than that of the cases: a period that begins after a slot, and any resource. */
const otherQueries: Record<string, Record<string, string>[]> = {
  listSlots: [{ from: '2031-05-02T00:00', to: '2031-05-03T00:00' }, {}],
  listTimeslots: [{ from: '2031-05-02T00:00', to: '2031-05-03T00:00' }],
  listBlocks: [{ from: '2031-09-02T00:00', to: '2031-09-03T00:00' }],
  listAppointments: [{ from: '2031-04-01T00:00', to: '2031-04-02T00:00' }],
  listParticipations: [{ from: '2031-05-02T00:00', to: '2031-05-03T00:00' }],
};

function requestsOf({ operation: { operationId } }: Place): Request[] {
  const { request } = cases[operationId]!;
  const usual = request(world, practice);
  return [usual, ...(otherQueries[operationId] ?? []).map((query) => ({ ...usual, query }))];
}

const send = (place: Place, { path, query }: Request, more: Record<string, string> = {}): Promise<Answer> =>
  sendRequest(crm, place, { path, query: { ...query, ...more } });

/** A cursor of each kind that the service makes, with whatever is in it. */
const time = fc.oneof(
  fc.constantFrom(
    -8.64e15,
    8.64e15,
    -62_167_219_200_000,
    -62_135_596_800_001,
    -62_135_596_800_000,
    253_402_300_799_999,
    253_402_300_800_000,
    -1,
    0,
    1,
  ),
  fc.date({ noInvalidDate: true }).map((date) => date.getTime()),
  fc
    .date({ noInvalidDate: true, min: new Date('2031-01-01'), max: new Date('2032-01-01') })
    .map((date) => date.getTime()),
);
const id = fc.oneof(
  fc.uuid(),
  fc.constantFrom(
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    'FFFFFFFF-FFFF-7FFF-BFFF-FFFFFFFFFFFF',
    '',
    '~',
  ),
);
const encode = (text: string): string => Buffer.from(text).toString('base64url');
const position = fc.tuple(time, id).map(([at, of]) => encode(`${new Date(at).toISOString()} ${of}`));
const cursors = fc
  .oneof(
    position,
    fc.tuple(position, id).map((parts) => parts.join('.')),
    fc.tuple(time, id, id).map((parts) => encode(parts.join(' '))),
    id.map(encode),
    id,
    fc.string({ unit: 'binary', maxLength: 60 }).map(encode),
    fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 60 }),
  )
  .filter((cursor) => cursor !== '');

const someId = '0199d6a5-7c1e-7abc-8def-0123456789ab';
const knownForgeries = [
  '+275760-09-13T00:00:00.000Z',
  '-271821-04-20T00:00:00.000Z',
  '0000-01-01T00:00:00.000Z',
  '0001-01-01T00:00:00.000Z',
  '1970-01-01T00:00:00.000Z',
].flatMap((at) => [
  encode(`${at} ${someId}`),
  `${encode(`${at} ${someId}`)}.${someId}`,
  encode(`${Date.parse(at)} ${someId} `),
]);

describe.each(someOf(lists))('a forged cursor of $operationId', ({ place, parameter }) => {
  it('is rejected, or lists nothing else than the list without it', async () => {
    for (const request of requestsOf(place)) {
      const { body: complete } = await send(place, request);
      const known = new Set((complete as unknown[]).map((each) => JSON.stringify(each)));
      await fc.assert(
        fc.asyncProperty(
          cursors,
          fc.constantFrom<Record<string, string>>({}, { limit: '1' }, { limit: '20' }),
          async (cursor, limit) => {
            const { status, body, text } = await send(place, request, { [parameter]: cursor, ...limit });
            if (status === 200)
              expect((body as unknown[]).filter((each) => !known.has(JSON.stringify(each)))).toEqual([]);
            else expect((body as Problem).errors ?? (body as Problem).code, text).toSatisfy(isAbout(parameter));
          },
        ),
        { numRuns: 150, examples: knownForgeries.map((cursor) => [cursor, {}]) },
      );
    }
  });
});

/** The rejection is about the parameter, or the feed no longer has the event. */
function isAbout(parameter: string) {
  return (given: Problem['errors'] | string): boolean =>
    given === 'events.expired' || (Array.isArray(given) && given.length === 1 && given[0]!.parameter === parameter);
}
