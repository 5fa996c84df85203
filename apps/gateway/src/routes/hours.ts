import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Hours } from '@scheduling/contracts/calendar/v1';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { weightOfMany } from '../admission.ts';
import type { Clients } from '../clients.ts';
import {
  date,
  endTimeOfDay,
  givenFields,
  maxNoteLength,
  oneOf,
  optionalDate,
  optionalInteger,
  optionalText,
  reference,
  timeOfDay,
} from '../fields.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { apiInfoValue, nullable, nullableString, problems, wrapped, wrappedTogether } from '../schemas.ts';
import { conflicts } from './conflicts.ts';
import { jsonType } from './json-stream.ts';
import { toLocation } from './locations.ts';
import { providerParams, resourceParams } from './path-parameters.ts';
import { newTimeslotFields, timeslotFields } from './timeslot-fields.ts';
import { wrapJson } from './wrap-json.ts';

/** interface 14. */
export function hoursRoutes({ hours }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.put(
      '/provider/:providerRef/resource/:resourceRef/hours',
      { schema: putHoursSchema, config: { ...needsAll, weigh: weightOfHours } },
      async ({ params, body }, reply) => {
        const { json, conflicts } = await hours.putHours(params, { hours: toHours(body) });
        return reply.type(jsonType).send(wrapJson('hours', json, { conflicts: conflicts! }));
      },
    );

    app.get(
      '/provider/:providerRef/resource/:resourceRef/hours',
      { schema: getHoursSchema, config: needsRead },
      async ({ params }, reply) => {
        const { json } = await hours.getHours(params);
        return reply.type(jsonType).send(wrapJson('hours', json));
      },
    );

    app.delete(
      '/provider/:providerRef/resource/:resourceRef/hours',
      { schema: deleteHoursSchema, config: needsAll },
      async ({ params }) => {
        const { conflicts } = await hours.deleteHours(params);
        return { 'api-info': apiInfoValue, conflicts: conflicts! };
      },
    );

    app.put(
      '/provider/:providerRef/hours',
      { schema: putHoursOfResourcesSchema, config: { ...needsAll, weigh: weightOfHours } },
      async ({ params, body }, reply) => {
        const { json, conflicts } = await hours.putHoursOfResources(params, {
          resourceReferences: body.resourceReferences,
          hours: toHours(body),
        });
        return reply.type(jsonType).send(wrapJson('hours', `[${json.toString()}]`, { conflicts: conflicts! }));
      },
    );
  };
}

/** About as many timeslots as are made, if none of them exists. As many may be removed. */
function weightOfHours({ body }: FastifyRequest): number {
  const hours = body as Static<typeof newHours> & { resourceReferences?: string[] };
  const { weekly, exceptions, aheadDays, resourceReferences: { length: resources } = { length: 1 } } = hours;
  const windowsInWeek = weekly.reduce((sum, { weekdays }) => sum + weekdays.length, 0);
  const windowsInDay = Math.max(windowsInWeek / 7, ...(exceptions ?? []).map(({ windows }) => windows.length));
  return weightOfMany(resources * windowsInDay * (aheadDays ?? defaultAheadDays));
}

function toHours(body: Static<typeof newHours>): Hours {
  const { exceptions = [], aheadDays = defaultAheadDays, ...hours } = givenFields(newHours, body);
  return {
    ...hours,
    weekly: body.weekly.map((window) => ({
      ...givenFields(newHoursWindow, window),
      address: toLocation(window.address),
    })),
    exceptions: exceptions.map((exception) => ({
      ...givenFields(newHoursException, exception),
      windows: exception.windows.map((window) => ({
        ...givenFields(newExceptionWindow, window),
        weekdays: [],
        address: toLocation(window.address),
      })),
    })),
    aheadDays,
  };
}

const maxWindows = 50;
const maxExceptions = 400;
const maxAheadDays = 400;
const defaultAheadDays = 92;
const maxResources = 20;
const weekdayNames = ['1', '2', '3', '4', '5', '6', '7'] as const;

const texts = {
  weekdays: '`1` is Monday. A window that ends after midnight belongs to the day on which it starts.',
  from: 'When it starts.',
  to: 'When it ends; on the next day, if that is before `from`.',
  exceptionFrom: 'The first day.',
  exceptionTo: 'The last day.',
  windows: 'Instead of the weekly windows of these days; empty: closed.',
  exceptions: 'Days with other windows. If several exceptions contain a day, the last one counts.',
  validFrom: 'The first day with windows.',
  validUntil: 'The last day with windows.',
  aheadDays: 'For how many days timeslots are made, counting today',
};

const windowInput = {
  from: timeOfDay(texts.from),
  to: endTimeOfDay(texts.to),
  ...newTimeslotFields,
};

const newHoursWindow = Type.Object(
  {
    weekdays: Type.Array(oneOf(weekdayNames), {
      minItems: 1,
      maxItems: weekdayNames.length,
      uniqueItems: true,
      description: texts.weekdays,
    }),
    ...windowInput,
  },
  { title: 'NewHoursWindow' },
);

const newExceptionWindow = Type.Object(windowInput, { title: 'NewExceptionWindow' });

const newHoursException = Type.Object(
  {
    from: date(texts.exceptionFrom),
    to: date(texts.exceptionTo),
    windows: Type.Array(newExceptionWindow, { maxItems: maxWindows, description: texts.windows }),
    note: Type.Optional(optionalText({ maxLength: maxNoteLength })),
  },
  { title: 'NewHoursException' },
);

const newHoursFields = {
  weekly: Type.Array(newHoursWindow, { maxItems: maxWindows }),
  exceptions: Type.Optional(
    Type.Unsafe<Static<typeof newHoursException>[] | null>({
      type: ['array', 'null'],
      items: newHoursException,
      maxItems: maxExceptions,
      description: texts.exceptions,
    }),
  ),
  validFrom: Type.Optional(optionalDate(texts.validFrom)),
  validUntil: Type.Optional(optionalDate(texts.validUntil)),
  aheadDays: Type.Optional(
    optionalInteger({
      minimum: 1,
      maximum: maxAheadDays,
      description: `${texts.aheadDays}; defaults to ${defaultAheadDays}.`,
    }),
  ),
};

const windowExample = {
  from: '09:00',
  to: '12:30',
  raster: 30,
  defaultCapacity: 1,
  defaultAcceptBookings: true,
  bufferAfter: 15,
};
const weekdaysExample = ['1', '2', '3', '4', '5'];
const closedExample = { from: '2030-07-15', to: '2030-07-26', windows: [], note: 'Summer holidays' };
const longExample = { from: '2030-07-29', to: '2030-07-29' };
const longWindowExample = { ...windowExample, to: '18:00' };

const newHoursExample = {
  weekly: [{ weekdays: weekdaysExample, ...windowExample }],
  exceptions: [closedExample, { ...longExample, windows: [longWindowExample] }],
};

const newHours = Type.Object(newHoursFields, { title: 'NewHours', examples: [newHoursExample] });

const defaultsExample = { bufferBefore: 0, address: null };
const hoursExample = {
  resourceReference: 'room-1@acme',
  weekly: [{ weekdays: weekdaysExample, ...windowExample, ...defaultsExample }],
  exceptions: [closedExample, { ...longExample, windows: [{ ...longWindowExample, ...defaultsExample }], note: null }],
  validFrom: null,
  validUntil: null,
  aheadDays: 92,
  madeUntil: '2030-07-31',
};

const window = {
  from: Type.String({ description: texts.from }),
  to: Type.String({ description: texts.to }),
  ...timeslotFields,
};

const day = (description: string) => Type.String({ format: 'date', description });
const nullableDay = (description: string) => nullable<string>({ type: 'string', format: 'date', description });

const hours = Type.Object(
  {
    resourceReference: Type.String(),
    weekly: Type.Array(
      Type.Object(
        { weekdays: Type.Array(oneOf(weekdayNames), { description: texts.weekdays }), ...window },
        { title: 'HoursWindow' },
      ),
    ),
    exceptions: Type.Array(
      Type.Object(
        {
          from: day(texts.exceptionFrom),
          to: day(texts.exceptionTo),
          windows: Type.Array(Type.Object(window, { title: 'ExceptionWindow' }), { description: texts.windows }),
          note: nullableString(),
        },
        { title: 'HoursException' },
      ),
      { description: texts.exceptions },
    ),
    validFrom: nullableDay(texts.validFrom),
    validUntil: nullableDay(texts.validUntil),
    aheadDays: Type.Integer({ description: `${texts.aheadDays}.` }),
    madeUntil: day('The last day for which timeslots have been made.'),
  },
  { title: 'Hours', examples: [hoursExample] },
);

const putHoursSchema = {
  operationId: 'putHours',
  summary: 'Set the opening hours of a resource',
  description:
    'Replaces them, and makes their timeslots, which are `BOOKABLE`. Timeslots of earlier hours that are in the new ones, too, keep their references. Of the others that are not over, ' +
    'those with appointments are hidden (`CREATED`), and the rest are removed. `conflicts` are the appointments outside the windows that start within 400 days. Repeating it changes nothing.',
  tags: ['Opening hours'],
  params: resourceParams,
  body: newHours,
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrappedTogether({ hours, conflicts }, 'The hours')),
    ...problems(['hours.invalid', 'provider.not_found'], { body: true }),
  },
} as const;

const getHoursSchema = {
  operationId: 'getHours',
  summary: 'Get the opening hours of a resource',
  description: 'As they were set.',
  tags: ['Opening hours'],
  params: resourceParams,
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrapped('hours', hours, 'The hours')),
    ...problems(['provider.not_found', 'hours.not_found']),
  },
} as const;

const deleteHoursSchema = {
  operationId: 'deleteHours',
  summary: 'Delete the opening hours of a resource',
  description: 'Removes or hides their timeslots, as hours without windows do. Can be repeated.',
  tags: ['Opening hours'],
  params: resourceParams,
  response: {
    200: wrapped('conflicts', conflicts, 'Deleted, or there are none'),
    ...problems(['provider.not_found'], { body: true }),
  },
} as const;

const hoursOfResources = Type.Array(hours, {
  description: 'In the order of the request.',
  examples: [[hoursExample, { ...hoursExample, resourceReference: 'room-2@acme' }]],
});

const putHoursOfResourcesSchema = {
  operationId: 'putHoursOfResources',
  summary: 'Set the same opening hours for several resources',
  description: 'Sets the hours of all of them or of none. `conflicts` are those of all of them together.',
  tags: ['Opening hours'],
  params: providerParams,
  body: Type.Object(
    {
      resourceReferences: Type.Array(reference(), { minItems: 1, maxItems: maxResources, uniqueItems: true }),
      ...newHoursFields,
    },
    {
      title: 'NewHoursOfResources',
      examples: [{ resourceReferences: ['room-1@acme', 'room-2@acme'], ...newHoursExample }],
    },
  ),
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrappedTogether({ hours: hoursOfResources, conflicts }, 'The hours')),
    ...problems(['hours.invalid', 'provider.not_found'], { body: true }),
  },
} as const;
