import { beforeAll, describe, expect, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import { examplesOf, type Place } from '@scheduling/test-stack/api-document';
import { readAppointment } from './answers.ts';
import { apiDocument, type Problem } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  createTimeslot,
  newAppointment,
  newUser,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';

const { places, document } = await apiDocument();
const strict = { headers: { prefer: 'handling=strict' } };
const withBody = places.flatMap((place) =>
  bodiesFor(place).map((body, index) => ({
    place,
    body,
    title: `body ${index + 1} of ${place.operation.operationId}`,
  })),
);

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

describe.each(someOf(places))('$operation.operationId', (place) => {
  const [body] = bodiesFor(place);
  const query = { ...requiredQuery(place), sendMail: false, 'a/b': 1 };

  it('rejects unknown parameters if strict handling is preferred', async () => {
    const {
      status,
      headers,
      body: problem,
    } = await crm.send<Problem>(place.method.toUpperCase(), addressOf(place), body, { query, ...strict });
    expect({ status, code: problem.code, errors: problem.errors }).toEqual({
      status: 400,
      code: 'request.unknown_field',
      errors: ['sendMail', 'a/b'].map((parameter) => ({ parameter, detail: 'is not a known parameter' })),
    });
    expect(headers.get('preference-applied')).toBe('handling=strict');
  });

  it('ignores them otherwise', async () => {
    const { headers, body: answer } = await crm.send<Problem | undefined>(
      place.method.toUpperCase(),
      addressOf(place),
      body,
      { query },
    );
    expect(['request.unknown_field', 'request.invalid']).not.toContain(answer?.code);
    expect(headers.get('preference-applied')).toBeNull();
  });

  it('accepts known ones', async () => {
    const { headers, body: answer } = await crm.send<Problem | undefined>(
      place.method.toUpperCase(),
      addressOf(place),
      body,
      { query: requiredQuery(place), ...strict },
    );
    expect(answer?.code).not.toBe('request.unknown_field');
    expect(headers.get('preference-applied')).toBe('handling=strict');
  });
});

describe.each(someOf(withBody))('$title', ({ place, body }) => {
  const { changed, pointers } = withUnknownFields(body);

  it('with unknown fields is rejected and reports them at every depth, if strict handling is preferred', async () => {
    const { status, body: problem } = await crm.send<Problem>(
      place.method.toUpperCase(),
      addressOf(place),
      changed,
      strict,
    );
    expect({ status, code: problem.code }).toEqual({ status: 400, code: 'request.unknown_field' });
    expect(problem.errors!.toSorted(byPointer)).toEqual(
      pointers.map((pointer) => ({ pointer, detail: 'is not a known field' })).toSorted(byPointer),
    );
  });

  it('with unknown fields is accepted otherwise', async () => {
    const { body: answer } = await crm.send<Problem | undefined>(place.method.toUpperCase(), addressOf(place), changed);
    expect(['request.unknown_field', 'request.invalid']).not.toContain(answer?.code);
  });
});

describe('strict handling', () => {
  it('books nothing when a parameter is misspelled', async () => {
    const appointmentReference = await createAppointment(practice);
    const booking = {
      reference: unique('booking'),
      appointmentReference,
      customerReference: practice.customer,
      state: 'BOOKED',
    };
    expect(
      await crm.post(`${practice.at}/participations`, booking, { query: { sendMail: false }, ...strict }),
    ).toMatchObject({ status: 400 });
    expect((await readAppointment(practice, appointmentReference)).participations).toEqual([]);
  });

  it('checks participations, and fields that the kind of body does not use', async () => {
    const single = {
      reference: unique('a'),
      start: '2031-03-03T09:00',
      end: '2031-03-03T10:00',
      resourceReference: 'r',
      productReference: 'p',
    };
    const participant = { reference: unique('p'), name: 'N', email: 'n@test.example', state: 'BOOKED' };
    const series = {
      series_data: { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 30 },
      resourceReference: 'r',
      productReference: 'p',
    };
    for (const [body, expected] of [
      [{ ...single, participations: [participant, { ...participant, 'no/te': 'x' }] }, ['/participations/1/no~1te']],
      [{ ...series, participations: [participant] }, ['/participations']],
      [
        { ...single, address: { town: 'B' }, price: { value: 1, currency: 'EUR', tax: 0 } },
        ['/address/town', '/price/tax'],
      ],
    ] as const) {
      const { body: problem } = await crm.post<Problem>(`${practice.at}/appointments`, body, strict);
      expect(problem.errors!.map(({ pointer }) => pointer)).toEqual(expected);
    }
  });

  it('accepts a field that the interface says is ignored', async () => {
    const series = {
      series_data: { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 30 },
      resourceReference: 'r',
      productReference: 'p',
    };
    expect(await crm.post(`${practice.at}/appointments`, { ...series, reference: 'ignored' }, strict)).toMatchObject({
      status: 201,
    });
  });

  it.each<[string, (none: null | '') => [path: string, body: object] | Promise<[path: string, body: object]>]>([
    [
      'a booking of a timeslot',
      async (none) => ['/bookings', { ...(await freeSlot()), ...someone(), appointmentReference: none }],
    ],
    [
      'a booking of an appointment',
      async (none) => {
        const fields = [
          'timeslotReference',
          'start',
          'duration',
          'productReference',
          'productName',
          'price',
          'contactReference',
        ];
        return [
          '/bookings',
          {
            ...someone(),
            appointmentReference: await createAppointment(practice, { acceptBookings: true }),
            ...Object.fromEntries(fields.map((name) => [name, none])),
          },
        ];
      },
    ],
    [
      'a single appointment',
      (none) => ['/appointments', { ...newAppointment(practice), series_data: none, from: none, to: none }],
    ],
    [
      'a series',
      (none) => {
        const series_data = { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 30 };
        return [
          '/appointments',
          { ...newAppointment(practice), series_data, start: none, end: none, participations: none },
        ];
      },
    ],
    [
      'a user who becomes staff',
      async (none) => {
        const { reference, ...person } = newUser({ firstName: 'Ada', phone: '1', mobile: '2', language: 'de' });
        await crm.post('/user', { reference, ...person });
        return ['/staff', { reference, ...Object.fromEntries(Object.keys(person).map((name) => [name, none])) }];
      },
    ],
    ['a person who is invited as staff', (none) => ['/staff', newUser({ reference: none })]],
  ])('takes a field that only the other kind of body has as absent if it is null or empty: %s', async (_, bodyWith) => {
    for (const none of [null, ''] as const) {
      const [at, body] = await bodyWith(none);
      expect(await crm.post(practice.at + at, body, strict), JSON.stringify(none)).toMatchObject({ status: 201 });
      const [again, more] = await bodyWith(none);
      expect(await crm.post(practice.at + again, { ...more, unknown: none }, strict)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/unknown' }] },
      });
    }
  });

  it('rejects every field if the operation takes no body', async () => {
    const { body: problem } = await crm.delete<Problem>(`${practice.at}/timeslots/t`, { force: true }, strict);
    expect(problem).toMatchObject({
      code: 'request.unknown_field',
      errors: [{ pointer: '/force', detail: 'is not a known field' }],
    });
  });

  it('reports at most 1,000 unknown fields', async () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`field${index}`, 1]));
    const { status, body: problem } = await crm.post<Problem>('/user', many, strict);
    expect({ status, code: problem.code, named: problem.errors!.length }).toEqual({
      status: 400,
      code: 'request.unknown_field',
      named: 1_000,
    });
  });
});

async function freeSlot(): Promise<object> {
  const timeslotReference = await createTimeslot(practice, { resourceReference: unique('room') });
  return { timeslotReference, start: '2031-03-03T08:00', productReference: 'p' };
}

function someone(): object {
  return { reference: unique('booking'), customerReference: practice.customer, state: 'BOOKED' };
}

/** The examples of the document, with new e-mail addresses and usernames, because these are unique across all CRMs. */
function bodiesFor({ operation }: Place): unknown[] {
  const examples = examplesOf(operation.requestBody?.content['application/json'], document);
  return JSON.parse(JSON.stringify(examples).replaceAll('.beispiel', `.${unique('strict')}`)) as unknown[];
}

/** A path of the operation, under the provider of the examples. */
function addressOf({ path }: Place): string {
  return path.replace('/crms/{crmId}', '').replaceAll(/\{\w+\}/g, 'workshop@acme');
}

function requiredQuery({ operation }: Place): Record<string, string> {
  const names = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(({ name }) => name);
  return Object.fromEntries(names.map((name) => [name, '2031-03-03T09:00']));
}

/**
 * A copy with an unknown field in each of its objects, and the pointers to these fields. Those of metadata have any
 * names.
 */
function withUnknownFields(body: unknown): { changed: unknown; pointers: string[] } {
  const pointers: string[] = [];
  const change = (node: unknown, pointer: string): unknown => {
    if (Array.isArray(node)) return node.map((each, index) => change(each, `${pointer}/${index}`));
    if (typeof node !== 'object' || node === null || pointer.endsWith('/metadata')) return node;
    pointers.push(`${pointer}/capicity`);
    const entries = Object.entries(node).map(([name, value]) => [name, change(value, `${pointer}/${name}`)]);
    return { ...Object.fromEntries(entries), capicity: { a: 1 } };
  };
  return { changed: change(body, ''), pointers };
}

function byPointer(a: { pointer?: string }, b: { pointer?: string }): number {
  return a.pointer!.localeCompare(b.pointer!);
}
