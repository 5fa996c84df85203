import type { FastifySchema } from 'fastify';
import type { FieldFormat } from './fields.ts';
import { formatPatterns } from './format-patterns.ts';
import type { Scope } from './key-scopes.ts';
import { referToExamples } from './problem-examples.ts';
import { forbiddenByScope } from './schemas.ts';
import { describeWebhooks } from './webhook-description.ts';

declare module 'fastify' {
  interface FastifySchema {
    /** An extension of the API document. */
    'x-required-scope'?: Scope;
  }
}

type Json = Record<string, unknown>;

interface Parameter {
  name: string;
  in: string;
  schema?: Json;
  [property: string]: unknown;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: Json;
  responses: Record<string, Response>;
}

interface Response {
  headers?: Json;
  content?: { 'application/problem+json'?: ProblemMedia };
}

interface ProblemMedia {
  schema: { allOf: [unknown, { properties: { code: { enum: string[] } } }] };
  examples?: Json;
}

/**
 * Alternative forms of a body or an answer, which the validator or the serializer distinguishes by a condition, are
 * shown to readers as `anyOf`.
 */
export function showAlternatives(schema: FastifySchema): FastifySchema {
  const responses = Object.entries((schema?.response ?? {}) as Json).map(([status, response]) => [
    status,
    showAlternative(response as Json),
  ]);
  return {
    ...schema,
    ...(schema?.body !== undefined && { body: showAlternative(schema.body as Json) }),
    response: Object.fromEntries(responses),
  };
}

function showAlternative(schema: Json): Json {
  if (schema['if'] === undefined) return schema;
  const { type: _type, if: _condition, then: consequent, else: otherwise, ...rest } = schema;
  return { ...rest, anyOf: [otherwise, consequent] };
}

/** Says which scope an operation needs, and that it can be refused to keys with less. Files need no key. */
export function showScope(schema: FastifySchema, scope: Scope | undefined): FastifySchema {
  if (scope === undefined) return schema;
  return {
    ...schema,
    description: `${schema.description}\n\nNeeds the scope \`${scope}\`.`,
    'x-required-scope': scope,
    response: { ...(schema.response as Json), ...(scope !== 'read' && forbiddenByScope()) },
  };
}

/** Adds what the schemas of the routes do not say to the document generated from them. */
export function completeDocument(document: Json): Json {
  const schemas: Json = {};
  const examples: Json = {};
  const paths = nameComponents(document['paths'], schemas) as Record<string, Record<string, Operation>>;
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      operation.parameters = [...(operation.parameters ?? []).map(withStyle), prefer].toSorted(
        (a, b) => placeInPath(path, a) - placeInPath(path, b),
      );
      if (method === 'delete' && operation.requestBody !== undefined) operation.requestBody['required'] = false;
      for (const [status, response] of Object.entries(operation.responses)) {
        response.headers = { ...response.headers, ...commonHeaders(method, status) };
        addExamples(response, { hasBody: operation.requestBody !== undefined }, examples);
      }
    }
  }
  const [eventExample] = (schemas['Event'] as { examples: unknown[] }).examples;
  return {
    ...document,
    paths,
    webhooks: describeWebhooks(eventExample),
    components: { ...(document['components'] as Json), headers, schemas, examples },
  };
}

/** How a parameter is written belongs to the parameter, and not to the schema of its value. */
function withStyle(parameter: Parameter): Parameter {
  const { style, explode, ...schema } = parameter.schema ?? {};
  return style === undefined ? parameter : { ...parameter, style, explode, schema };
}

/** An error response has an example for each of its codes. */
function addExamples({ content }: Response, request: { hasBody: boolean }, examples: Json): void {
  const media = content?.['application/problem+json'];
  if (media !== undefined)
    media.examples = referToExamples(media.schema.allOf[1].properties.code.enum, request, examples);
}

/** Moves every schema with a title to the components, once, and replaces it with references. */
function nameComponents(node: unknown, schemas: Json): unknown {
  if (Array.isArray(node)) return node.map((each) => nameComponents(each, schemas));
  if (typeof node !== 'object' || node === null) return node;
  const replaced = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, isData(key) ? value : nameComponents(value, schemas)]),
  );
  const { title, format, documentedEnum } = replaced;
  // For the serializer only: a client would take it to mean that the field may be missing.
  if (replaced['default'] === null) delete replaced['default'];
  const known = formatPatterns[format as FieldFormat];
  if (known !== undefined) {
    delete replaced['format'];
    replaced['pattern'] = replaced['pattern'] === undefined ? known.pattern : known.notBlank;
  }
  if (documentedEnum !== undefined) {
    delete replaced['documentedEnum'];
    replaced['enum'] = documentedEnum;
  }
  if (typeof title !== 'string') return replaced;
  return nameSchema(title, isObjectOrText(replaced) ? asAlternatives(title, replaced, schemas) : replaced, schemas);
}

function nameSchema(title: string, schema: Json, schemas: Json): Json {
  schemas[title] = schema;
  return { $ref: `#/components/schemas/${title}` };
}

function isObjectOrText({ type }: Json): boolean {
  return Array.isArray(type) && type.includes('object') && type.includes('string');
}

/** As `anyOf`: of a list of types, generators of clients see only the object. */
function asAlternatives(title: string, schema: Json, schemas: Json): Json {
  const { type: _types, properties, required, maxLength, pattern, ...rest } = schema;
  const fields = nameSchema(`${title}Fields`, { type: 'object', properties, required }, schemas);
  return { ...rest, anyOf: [fields, { type: 'string', maxLength, pattern }, { type: 'null' }] };
}

/** Examples are data, whatever their fields are called. */
function isData(key: string): boolean {
  return ['default', 'documentedEnum', 'enum', 'example', 'examples'].includes(key);
}

/** The parameters of the path come first, in the order of the path, and all others after them. */
function placeInPath(path: string, { name, in: location }: { name: string; in: string }): number {
  return location === 'path' ? path.indexOf(`{${name}}`) : path.length;
}

/** The headers that any operation may send with this status. */
function commonHeaders(method: string, status: string): Json {
  const names =
    status === '401'
      ? ['X-Request-Id', 'WWW-Authenticate']
      : ['X-Request-Id', 'RateLimit-Policy', 'RateLimit', 'Preference-Applied'];
  if (method === 'post' && status.startsWith('2')) names.push('Idempotency-Replayed');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const prefer = {
  name: 'Prefer',
  in: 'header',
  required: false,
  description:
    'With `handling=strict` (RFC 7240), unknown parameters and fields are rejected with `request.unknown_field`. By default they are ignored.',
  schema: { type: 'string' },
};

const headers = {
  'X-Request-Id': {
    description:
      'ID of the request: the one the client sent in this header, or a generated one. It is also in the logs.',
    schema: { type: 'string' },
    example: '5c0f1f0e-3a52-4d0c-9f2b-0a3f6f5b7d11',
  },
  'RateLimit-Policy': {
    description: 'The rate limit of the key: `q` requests per `w` seconds. Absent if the CRM has no limit.',
    schema: { type: 'string' },
    example: '"key";q=6000;w=60',
  },
  RateLimit: {
    description:
      'What remains of the rate limit: `r` requests in the next `t` seconds. Absent if the CRM has no limit.',
    schema: { type: 'string' },
    example: '"key";r=5999;t=42',
  },
  'Preference-Applied': {
    description: 'Sent when the request had the header `Prefer: handling=strict`.',
    schema: { type: 'string' },
    example: 'handling=strict',
  },
  'Idempotency-Replayed': {
    description:
      '`true` if the request repeats an earlier one with the same `Idempotency-Key`, and has had no effect of its own. Absent otherwise.',
    schema: { type: 'string' },
    example: 'true',
  },
  'WWW-Authenticate': {
    description: 'The authentication challenge (RFC 9110): the header that must carry the key.',
    schema: { type: 'string' },
    example: 'ApiKey header="X-SERVICE-CLIENT-ID"',
  },
};
