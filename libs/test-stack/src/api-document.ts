import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

export interface Media {
  schema: unknown;
  example?: unknown;
  examples?: Record<string, Example>;
}

type Example = { value: unknown } | { $ref: string };

export interface Operation {
  operationId: string;
  /** The scope that a key needs (interface 5.1); absent in the requests to webhooks. */
  'x-required-scope'?: 'read' | 'book' | 'all';
  parameters?: {
    name: string;
    in: 'path' | 'query' | 'header';
    required?: boolean;
    description?: string;
    schema: unknown;
  }[];
  requestBody?: { content: { 'application/json': Media } };
  responses: Record<string, { headers?: Record<string, unknown>; content?: Record<string, Media> }>;
}

export interface Document {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown>; examples: Record<string, { value: unknown }> };
}

/** An operation and its place in the document. */
export interface Place {
  path: string;
  /** In lower case, as in the document. */
  method: string;
  operation: Operation;
}

export interface ApiDocument {
  document: Document;
  text: string;
  places: Place[];
  /** The operation that handles this request, if there is one. */
  find(method: string, pathname: string): Place | undefined;
  /** How a response deviates from the document: empty if it matches. */
  check(place: Place, answer: DocumentedAnswer): string[];
}

export interface DocumentedAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** All examples of a body. */
export function examplesOf(media: Media | undefined, { components }: Document): unknown[] {
  if (media?.example !== undefined) return [media.example];
  const named = Object.values(media?.examples ?? {});
  return named.map(
    (example) => ('value' in example ? example : components.examples[example.$ref.split('/').at(-1)!]!).value,
  );
}

/** The parts of a schema that say which fields a value can have. */
export interface FieldSchema {
  $ref?: string;
  anyOf?: unknown[];
  properties?: Record<string, unknown>;
  items?: unknown;
}

/** The schemas of which a value can have the fields: this one, or its alternatives. */
export function fieldSchemas(schema: unknown, document: Document): FieldSchema[] {
  if (schema === undefined) return [];
  const { $ref, anyOf = [] } = schema as FieldSchema;
  if ($ref !== undefined) return fieldSchemas(document.components.schemas[$ref.split('/').at(-1)!], document);
  return [schema as FieldSchema, ...anyOf.flatMap((each) => fieldSchemas(each, document))];
}

/** Every problem code of the document. */
export function codesIn(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/"code":\{"type":"string","enum":\[([^\]]+)\]/g)].flatMap(
      (match) => JSON.parse(`[${match[1]}]`) as string[],
    ),
  );
}

export async function fetchApiDocument(gateway: string): Promise<ApiDocument> {
  const response = await fetch(`${gateway}/openapi.json`);
  const text = await response.text();
  const document = JSON.parse(text) as Document;
  const places = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
  );
  const patterns = new Map(places.map(({ path }) => [path, new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)]));
  // A static path takes precedence over one with parameters.
  const byPrecision = places.toSorted((a, b) => a.path.split('{').length - b.path.split('{').length);
  const validator = createValidator(document);
  return {
    document,
    text,
    places,
    find: (method, pathname) =>
      byPrecision.find((place) => place.method === method.toLowerCase() && patterns.get(place.path)!.test(pathname)),
    check: (place, answer) => checkAnswer(place, answer, validator),
  };
}

type Validator = (pointer: string[]) => ValidateFunction;

function createValidator(document: Document): Validator {
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    formats: {
      // interface 1: every date-time in a response has exactly this form, and only that of an event has milliseconds.
      'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/,
      date: /^\d{4}-\d\d-\d\d$/,
      uuid: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/,
    },
  });
  ajv.addSchema(document, 'document');
  const compiled = new Map<string, ValidateFunction>();
  return (pointer) => {
    const reference = `document#/${pointer.map(escapeStep).join('/')}`;
    const known = compiled.get(reference);
    if (known !== undefined) return known;
    const validate = ajv.compile({ $ref: reference });
    compiled.set(reference, validate);
    return validate;
  };
}

function escapeStep(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** Headers of interest only to HTTP or a browser, which the API document does not list. */
const generalHeaders = new Set([
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'x-content-type-options',
]);

function checkAnswer({ path, method, operation }: Place, answer: DocumentedAnswer, validator: Validator): string[] {
  const documented = operation.responses[answer.status];
  if (documented === undefined) return [`the status ${answer.status} is not documented`];
  const known = new Set(Object.keys(documented.headers ?? {}).map((name) => name.toLowerCase()));
  const undocumented = [...answer.headers.keys()].filter((name) => !known.has(name) && !generalHeaders.has(name));
  if (undocumented.length > 0)
    return [`headers that are not documented for ${answer.status}: ${undocumented.join(', ')}`];
  const contentType = answer.headers.get('content-type')?.split(';', 1)[0] ?? null;
  if (answer.status === 204) return answer.text === '' && contentType === null ? [] : ['a 204 has no content'];
  const expectedType = answer.status >= 400 ? 'application/problem+json' : 'application/json';
  if (contentType !== expectedType) return [`the content type is ${contentType}, not ${expectedType}`];
  if (documented.content?.[expectedType] === undefined)
    return [`${expectedType} is not documented for ${answer.status}`];
  const validate = validator([
    'paths',
    path,
    method,
    'responses',
    String(answer.status),
    'content',
    expectedType,
    'schema',
  ]);
  if (validate(JSON.parse(answer.text))) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
