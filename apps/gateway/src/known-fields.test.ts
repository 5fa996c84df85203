import { fastify, type FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { alternative, dateTime, nullableInstant, optionalBody, optionalDateTime } from './fields.ts';
import { knownFields, removeUnknownFields } from './known-fields.ts';
import { validatorCompiler } from './validation.ts';

const known = (value: unknown, schema: TSchema): unknown => knownFields(value, schema);

const child = Type.Object({ name: Type.String() });

describe('knownFields', () => {
  it('keeps what the schema names, at every depth', () => {
    const schema = Type.Object({
      name: Type.String(),
      child,
      children: Type.Array(child),
      numbers: Type.Array(Type.Integer()),
    });
    const all = { name: 'a', child: { name: 'b' }, children: [{ name: 'c' }], numbers: [1] };
    expect(known(all, schema)).toEqual(all);
    const more = {
      ...all,
      crmId: 'x',
      child: { name: 'b', crmId: 'x' },
      children: [{ name: 'c', crmId: { name: 'x' } }],
    };
    expect(known(more, schema)).toEqual(all);
  });

  it('keeps the fields of the kind that a body of one of two kinds has, and what is null or empty in the other', () => {
    const schema = alternative(
      'reference',
      Type.Object({ reference: Type.String() }),
      Type.Object({ email: Type.String() }),
    );
    expect(known({ reference: 'a', email: 'b', crmId: 'x' }, schema)).toEqual({ reference: 'a' });
    for (const none of [null, '']) {
      expect(known({ reference: 'a', email: none, crmId: none }, schema)).toEqual({ reference: 'a', email: none });
      expect(known({ reference: none, email: 'b', crmId: none }, schema)).toEqual({ reference: none, email: 'b' });
    }
  });

  it('keeps no field of the prototype', () => {
    const value = JSON.parse('{"__proto__":{"crmId":"x"},"constructor":"x","name":"a"}') as object;
    const result = known(value, child) as object;
    expect([Object.keys(result), Object.getPrototypeOf(result)]).toEqual([['name'], Object.prototype]);
  });

  it('leaves nothing of an object or a list whose schema does not say what is in it', () => {
    const schemas = [
      {},
      Type.Unknown(),
      Type.Union([child, Type.Null()]),
      Type.Intersect([child]),
      Type.Record(Type.String(), Type.Unknown()),
      Type.Object({}),
    ];
    expect(schemas.map((schema) => knownFields({ crmId: 'x' }, schema))).toEqual(schemas.map(() => ({})));
    expect(schemas.map((schema) => knownFields([{ crmId: 'x' }], schema))).toEqual(schemas.map(() => []));
  });

  it('writes date-times as all versions of the services read them', () => {
    const times = Type.Object({
      start: dateTime(),
      list: Type.Array(Type.Object({ end: optionalDateTime() })),
      now: nullableInstant('Now.'),
      text: Type.String(),
    });
    const sent = {
      start: '2030-01-01T10:00:59.999999',
      list: [{ end: '2030-01-01T10:00:00+0200' }, { end: null }],
      now: '2030-01-01T10:00:00.000-0330',
      text: '1.5+0200',
    };
    expect(known(sent, times)).toEqual({
      ...sent,
      start: '2030-01-01T10:00:59',
      list: [{ end: '2030-01-01T10:00:00+02:00' }, { end: null }],
      now: '2030-01-01T10:00:00-03:30',
    });
    const unchanged = ['', '2030-01-01T10:00', '2030-01-01T10:00Z', '2030-01-01T10:00:30+05:45'];
    expect(unchanged.map((value) => known(value, dateTime()))).toEqual(unchanged);
  });

  it('leaves what is no object as it is', () => {
    expect(
      [null, undefined, 'a', 1].map((value) => known(value, optionalBody({}, { title: 'T', examples: [] }))),
    ).toEqual([null, undefined, 'a', 1]);
  });
});

describe('removeUnknownFields', () => {
  it('hands a handler only what the schemas of its route name', async () => {
    const app = fastify();
    app.setValidatorCompiler(validatorCompiler);
    removeUnknownFields(app);
    const echo = async ({ query, body }: FastifyRequest) => ({ query, body: body ?? null });
    app.put(
      '/both',
      { schema: { querystring: Type.Object({ limit: Type.Optional(Type.Integer()) }), body: child } },
      echo,
    );
    app.put('/neither', echo);
    const send = async (url: string) =>
      (await app.inject({ method: 'PUT', url, payload: { name: 'a', crmId: 'x' } })).json<unknown>();
    expect(await send('/both?limit=1&crmId=x&crmId=y')).toEqual({ query: { limit: 1 }, body: { name: 'a' } });
    expect(await send('/neither?limit=1')).toEqual({ query: {}, body: {} });
  });
});
