import { Ajv } from 'ajv';
import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify';
import type { TSchema } from 'typebox';
import { type BodySchema, escapePointer, fieldsOf } from './body-schema.ts';
import { type FieldFormat, formats, maxFormattedLength } from './fields.ts';
import { type Fault, invalidRequest, RequestError } from './problem.ts';

/** The maximum number of elements of any list in a request. */
export const maxListLength = 500;
/** More than a list can have. Lists in lists, as those of opening hours, can have a hundred thousand. */
const maxFaults = 10_000;

/**
 * Validates the request exactly as the client sent it: reports all faults at once, removes nothing, converts nothing.
 */
const bodyAjv = createAjv(false);
/** Everything in an address is a string: `true`, `false` and numbers are parsed from it. */
const addressAjv = createAjv(true);

function createAjv(coerceTypes: boolean): Ajv {
  const ajv = new Ajv({
    allErrors: true,
    coerceTypes,
    useDefaults: true,
    strict: true,
    allowUnionTypes: true,
    verbose: false,
  });
  for (const keyword of ['documentedEnum', 'style', 'explode']) ajv.addKeyword(keyword);
  for (const [name, { passes }] of Object.entries(formats)) {
    ajv.addFormat(name, {
      type: 'string',
      validate: (value: string) => value.length <= maxFormattedLength && passes(value),
    });
  }
  return ajv;
}

/** Compiles the schemas of the routes for Fastify. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validate = (httpPart === 'body' ? bodyAjv : addressAjv).compile(schema);
  return (data: unknown) => {
    const oversized = findOversized(data, schema);
    if (oversized.length > 0) return { error: oversized };
    return validate(data) ? { value: data } : { error: validate.errors as FastifySchemaValidationError[] };
  };
};

/**
 * Lists and texts that are much too long are rejected before anything else is checked: a body of 1 MiB must neither
 * produce a hundred thousand errors nor have its characters counted.
 */
function findOversized(value: unknown, schema: BodySchema, pointer = ''): FastifySchemaValidationError[] {
  const tooLong = (keyword: string, limit: number): FastifySchemaValidationError[] => [
    { keyword, instancePath: pointer, schemaPath: '', params: { limit } },
  ];
  // A character has at most two code units.
  if (typeof value === 'string')
    return schema.maxLength !== undefined && value.length > 2 * schema.maxLength
      ? tooLong('maxLength', schema.maxLength)
      : [];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) {
    const { items, maxItems = Number.POSITIVE_INFINITY } = schema;
    if (value.length > maxItems) return tooLong('maxItems', maxItems);
    return items === undefined ? [] : value.flatMap((each, index) => findOversized(each, items, `${pointer}/${index}`));
  }
  const { maxProperties = Number.POSITIVE_INFINITY } = schema;
  if (Object.keys(value).length > maxProperties) return tooLong('maxProperties', maxProperties);
  const fields = fieldsOf(value, schema) ?? {};
  return Object.entries(value).flatMap(([name, each]) =>
    Object.hasOwn(fields, name) ? findOversized(each, fields[name]!, `${pointer}/${escapePointer(name)}`) : [],
  );
}

/** Turns the findings of a schema into one error. If a field has several faults, the first is reported. */
export function toRequestError(errors: FastifySchemaValidationError[], part: string): RequestError {
  // The only header with a schema. It is neither in the body nor in the address, so the detail names it.
  if (part === 'headers') return new RequestError('idempotency_key.invalid');
  const faults = new Map<string, Fault>();
  for (const error of errors) {
    // The result of an if/then/else as a whole; the faults within it are listed individually.
    if (error.keyword === 'if') continue;
    // Why a name does not pass; that it does not is listed, too.
    if (error.schemaPath.includes('/propertyNames/')) continue;
    const pointer = pointerOf(error);
    if (faults.has(pointer)) continue;
    if (faults.size === maxFaults) break;
    const detail = detailOf(error);
    faults.set(pointer, part === 'body' ? { pointer, detail } : faultOfParameter(error, pointer, detail));
  }
  return invalidRequest([...faults.values()]);
}

/** In an address, a `+` that is not escaped is a space: nobody who looks at the offset that was sent sees that. */
function faultOfParameter({ params }: FastifySchemaValidationError, pointer: string, detail: string): Fault {
  const isInstant = params['format'] === 'date-time-optional-offset' || params['format'] === 'instant';
  return {
    parameter: parameterOf(pointer),
    detail: isInstant ? `${detail}; in an address, the + of an offset is written %2B` : detail,
  };
}

function pointerOf({ keyword, instancePath, params }: FastifySchemaValidationError): string {
  const name = (keyword === 'required' ? params['missingProperty'] : params['propertyName']) as string | undefined;
  return name === undefined ? instancePath : `${instancePath}/${escapePointer(name)}`;
}

function detailOf({ keyword, params, message }: FastifySchemaValidationError): string {
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'minLength':
      return Number(params['limit']) > 1
        ? `must have at least ${String(params['limit'])} characters`
        : 'must not be empty';
    case 'pattern':
      return 'must not be empty';
    case 'maxLength':
      return `must not be longer than ${String(params['limit'])} characters`;
    case 'minItems':
      return 'must not be empty';
    case 'maxItems':
      return `must not have more than ${String(params['limit'])} elements`;
    case 'maxProperties':
      return `must not have more than ${String(params['limit'])} pairs`;
    case 'propertyNames':
      return 'must have a name of 1 to 40 of the characters A-Z a-z 0-9 _ . -';
    case 'uniqueItems':
      return 'must not have the same element twice';
    case 'minimum':
      return `must be at least ${String(params['limit'])}`;
    case 'maximum':
      return `must be at most ${String(params['limit'])}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as (string | null)[]).filter((value) => value !== null).join(', ')}`;
    case 'type':
      return `must be ${alternatives.format([params['type']].flat().flatMap((type) => typeNames[String(type)] ?? []))}`;
    case 'format':
      return formats[params['format'] as FieldFormat].detail;
    default:
      return message ?? 'is invalid';
  }
}

const alternatives = new Intl.ListFormat('en-GB', { type: 'disjunction' });

const typeNames: Record<string, string[]> = {
  string: ['a string'],
  integer: ['an integer'],
  number: ['a number'],
  boolean: ['true', 'false'],
  object: ['an object'],
  array: ['an array'],
  null: ['null'],
};

/** The member of an object is named as in the query, `metadata[tier]`. */
function parameterOf(pointer: string): string {
  const [name, ...members] = pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return [name, ...members.map((member) => `[${member}]`)].join('');
}
