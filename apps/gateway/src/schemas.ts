import { enumName, type EnumName } from '@scheduling/rpc';
import { toTimeJson } from '@scheduling/runtime';
import { type TArray, type TOptional, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { type ProblemCode, statusOf } from './problem.ts';

/**
 * Schemas that the answers of several resources share. A schema with a title becomes a component of the API document.
 */

const apiInfo = Type.Object({ version: Type.String({ examples: ['1'] }) }, { title: 'ApiInfo' });

/** interface 9: the version of every wrapped answer. */
export const apiInfoValue = { version: '1' };

/** `{ "api-info": …, "<entity>": … }` (interface 1), with the example of the entity. */
export function wrapped<Name extends string, Schema extends TSchema>(
  name: Name,
  schema: Schema,
  description: string,
  example: unknown = exampleOf(schema),
) {
  const examples = [{ 'api-info': apiInfoValue, [name]: example }];
  return Type.Object({ 'api-info': apiInfo, [name]: schema } as Wrapped<Name, Schema>, { description, examples });
}

/** As {@link wrapped}, with several entities beside each other. */
export function wrappedTogether<Entities extends TProperties>(entities: Entities, description: string) {
  const examples = Object.entries(entities).map(([name, schema]) => [name, exampleOf(schema)]);
  return Type.Object(
    { 'api-info': apiInfo, ...entities },
    { description, examples: [{ 'api-info': apiInfoValue, ...Object.fromEntries(examples) }] },
  );
}

/** A bare array (interface 1), with the example of its elements. */
export function list<Schema extends TSchema>(
  schema: Schema,
  options: { description: string; headers?: unknown },
): TArray<Schema> {
  return Type.Array(schema, { ...options, examples: [[exampleOf(schema)]] });
}

function exampleOf(schema: TSchema): unknown {
  return (schema as { examples?: unknown[] }).examples?.[0];
}

type Wrapped<Name extends string, Schema extends TSchema> = { 'api-info': typeof apiInfo } & Record<Name, Schema>;

/**
 * A field that is always present, and null if the service's message has no value: the serializer sends the default. The
 * API document does not show the default, because a client never has to apply it.
 */
export function nullable<Value>(schema: {
  type: string | string[];
  [keyword: string]: unknown;
}): TOptional<TUnsafe<Value | null | undefined>> {
  return Type.Unsafe({ ...schema, type: [schema.type, 'null'].flat(), default: null }) as TOptional<
    TUnsafe<Value | null | undefined>
  >;
}

export function nullableString(options: { description?: string; enum?: readonly (string | null)[] } = {}) {
  return nullable<string>({ type: 'string', ...options });
}

/** An instant as it is returned, `YYYY-MM-DDThh:mm:ssZ`. */
export function instant(description = 'UTC, `YYYY-MM-DDThh:mm:ssZ`.'): TUnsafe<string> {
  return Type.Unsafe<string>({ type: 'string', format: 'date-time', description, examples: ['2030-05-06T07:00:00Z'] });
}

export function presentInstant(date: Date | undefined): string {
  return toTimeJson(date!);
}

/** The name under which clients know an enum value. */
export function presentEnum<Enum extends Record<string, string>>(
  values: Enum,
  value: Enum[keyof Enum],
): EnumName<Enum> {
  const name = enumName(values, value);
  if (name === undefined) throw new Error(`a value that this gateway does not know: ${value}`);
  return name;
}

const problem = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    instance: Type.String({ description: 'The request ID, as in the `X-Request-Id` header.' }),
    code: Type.String({ description: 'Stable, machine-readable error code.' }),
    reason: Type.Optional(Type.String({ description: 'A more specific cause, for the codes that have one.' })),
    errors: Type.Optional(
      Type.Array(
        Type.Object(
          {
            pointer: Type.Optional(Type.String({ description: 'JSON pointer to a field of the body.' })),
            parameter: Type.Optional(Type.String({ description: 'Name of a path or query parameter.' })),
            detail: Type.String(),
          },
          { title: 'InvalidField' },
        ),
        { description: 'Every invalid field.' },
      ),
    ),
  },
  { title: 'Problem', description: 'An error (RFC 9457).' },
);

/** Error answers that every operation may return. */
const commonCodes = [
  'request.invalid',
  'request.malformed',
  'request.unknown_field',
  'key.missing',
  'key.invalid',
  'crm.forbidden',
  'rate.concurrent',
  'rate.limited',
  'rate.strangers',
  'internal',
  'service.unavailable',
] satisfies ProblemCode[];

/** Further error answers of every operation but a GET: a body is parsed even if the operation has no use for it. */
const bodyCodes = ['request.timeout', 'request.too_large', 'request.unsupported_media_type'] satisfies ProblemCode[];

/** Further error answers of an operation with an `Idempotency-Key`. */
const keyCodes = [
  'idempotency_key.invalid',
  'idempotency_key.in_flight',
  'idempotency_key.reused',
] satisfies ProblemCode[];

const descriptions: Record<number, string> = {
  400: 'The request is invalid',
  401: 'The API key is missing, unknown, expired or revoked',
  403: 'The API key does not permit this',
  404: 'Not found',
  408: 'The request did not arrive in time',
  409: 'Conflict',
  413: 'The body is too large',
  415: 'The body is not JSON, is compressed, or has another charset than UTF-8',
  422: 'The Idempotency-Key was used for a different request',
  429: 'Too many requests',
  500: 'Internal error',
  503: 'The service, or something it depends on, is temporarily unavailable',
};

const retryAfter = { 'Retry-After': { type: 'integer', description: 'Seconds to wait before trying again.' } };

export interface ProblemResponse {
  description: string;
  headers?: unknown;
  content: { 'application/problem+json': { schema: TSchema } };
}

/** The error answers of an operation: its own codes, and those that it shares with others. */
export function problems(
  own: ProblemCode[] = [],
  options: { body?: boolean; idempotencyKey?: boolean } = {},
): Record<number, ProblemResponse> {
  const codes = [
    ...commonCodes,
    ...(options.body ? bodyCodes : []),
    ...own,
    ...(options.idempotencyKey ? keyCodes : []),
  ];
  const byStatus = Map.groupBy<number, ProblemCode>(codes, statusOf);
  return Object.fromEntries(byStatus.entries().map(([status, list]) => [status, problemResponse(status, list)]));
}

/** The 403 of an operation that is refused to keys with a narrower scope, which every operation has otherwise. */
export function forbiddenByScope(): Record<number, ProblemResponse> {
  return { 403: problemResponse(403, ['crm.forbidden', 'key.scope_insufficient']) };
}

function problemResponse(status: number, codes: ProblemCode[]): ProblemResponse {
  return {
    description: `${descriptions[status]}: ${codes.map((code) => `\`${code}\``).join(', ')}.`,
    ...(mayBeTriedAgain(status, codes) && { headers: retryAfter }),
    content: {
      'application/problem+json': {
        schema: Type.Unsafe({
          allOf: [problem, { type: 'object', properties: { code: { type: 'string', enum: codes } } }],
        }),
      },
    },
  };
}

function mayBeTriedAgain(status: number, codes: ProblemCode[]): boolean {
  return status === 429 || status === 503 || codes.includes('idempotency_key.in_flight');
}
