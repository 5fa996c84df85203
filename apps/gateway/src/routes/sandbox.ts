import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { SandboxClock } from '@scheduling/contracts/calendar/v1';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { nullableInstant } from '../fields.ts';
import { apiInfoValue, instant, presentInstant, problems, wrapped } from '../schemas.ts';
import { crmParams } from './path-parameters.ts';

/** interface 11. */
export function sandboxRoutes({ clocks }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/sandbox/clock', { schema: getClockSchema }, async ({ params }) => {
      const { clock } = await clocks.getSandboxClock(params);
      return { 'api-info': apiInfoValue, clock: presentClock(clock!) };
    });

    app.put('/sandbox/clock', { schema: setClockSchema }, async ({ params, body }) => {
      const { clock } = await clocks.setSandboxClock({ crmId: params.crmId, now: body.now === null ? undefined : new Date(body.now) });
      return { 'api-info': apiInfoValue, clock: presentClock(clock!) };
    });
  };
}

function presentClock({ now, aheadMs }: SandboxClock) {
  return { now: presentInstant(now), aheadSeconds: Math.round(aheadMs / 1_000) };
}

const clockExample = { now: '2030-05-06T07:00:00Z', aheadSeconds: 86_400 };

const clock = Type.Object(
  {
    now: instant('What the clock shows; UTC, `YYYY-MM-DDThh:mm:ssZ`.'),
    aheadSeconds: Type.Integer({ description: 'How far it is ahead of the real time; 0 for a clock that was not set, negative for one that is behind.' }),
  },
  { title: 'SandboxClock', examples: [clockExample] },
);

const getClockSchema = {
  operationId: 'getSandboxClock',
  summary: 'Get the clock of a sandbox',
  description: 'The time by which the sandbox goes.',
  tags: ['Sandbox'],
  params: crmParams,
  response: {
    200: wrapped('clock', clock, 'The clock'),
    ...problems(['sandbox.not_found']),
  },
} as const;

const setClockSchema = {
  operationId: 'setSandboxClock',
  summary: 'Set the clock of a sandbox',
  description:
    'The clock goes on from there. Reservations, booking rules, the list of slots, archiving and retention go by it; reservations that are over by the new ' +
    'time are removed. `null` sets it to the real time.',
  tags: ['Sandbox'],
  params: crmParams,
  body: Type.Object({ now: nullableInstant('The new time, at most 10 years from the real one; `null`: the real time.') }, { title: 'SandboxClockChange', examples: [{ now: null }] }),
  response: {
    200: wrapped('clock', clock, 'The clock'),
    ...problems(['sandbox.invalid', 'sandbox.not_found'], { body: true }),
  },
} as const;
