import { isEmailAddress, parseLanguageTag } from '@scheduling/runtime';
import {
  type Static,
  type TInteger,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TString,
  type TUnsafe,
  Type,
} from 'typebox';

/**
 * The kinds of fields that requests consist of. Lengths count code points. An optional field may be null, and an empty
 * string is treated as null; what null means (absent, or clear) is up to the operation.
 */

/** Length of a reference, name or other single-line text. */
const maxLineLength = 255;
export const maxMessageLength = 1_024;
/** Of what a CRM notes for itself (interface 8). */
export const maxNoteLength = 1_023;
/** The longest text of all. */
export const maxLongTextLength = 10_000;

interface Options {
  description?: string;
  minLength?: number;
  maxLength?: number;
  format?: FieldFormat;
  /**
   * Values that only the API document lists, because the service that checks them rejects others with a status of its
   * own.
   */
  documentedEnum?: readonly (string | null)[];
}

/** Limits that no real calendar reaches; a raster is at most a year, in minutes. */
export const rasterRange = { minimum: 1, maximum: 525_600 };
export const capacityRange = { minimum: 0, maximum: 1_000_000 };

/** A required, non-empty single-line text. */
export function line(options: Options = {}): TString {
  return Type.String({ minLength: 1, maxLength: maxLineLength, pattern: '\\S', format: 'line', ...options });
}

/** A required reference of what the request creates, or that other requests have in their path. */
export function reference(options: Options = {}): TString {
  return line({ format: 'path-segment', ...options });
}

export function optionalReference(options: Options = {}): TUnsafe<string | null> {
  return optionalLine({ format: 'path-segment', ...options });
}

export function optionalLine(options: Options = {}): TUnsafe<string | null> {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: maxLineLength, format: 'line', ...options });
}

/** A text that may span several lines. */
export function optionalText(options: Options = {}): TUnsafe<string | null> {
  return optionalLine({ maxLength: maxMessageLength, format: 'text', ...options });
}

/** RFC 5321 4.5.3.1.3 leaves 254 characters. */
export function email(options: Options = {}): TString {
  return line({ maxLength: 254, format: 'email', ...options });
}

export function optionalEmail(options: Options = {}): TUnsafe<string | null> {
  return optionalLine({ maxLength: 254, format: 'email', ...options });
}

const dateTimeDescription =
  'Local date-time in the provider’s time zone, `YYYY-MM-DDThh:mm`. Seconds are optional, and a fraction of one is cut off. With `Z` or a UTC offset it is an instant.';

/** `meaning` is a sentence. */
export function dateTime(meaning?: string): TString {
  const description = meaning === undefined ? dateTimeDescription : `${meaning} ${dateTimeDescription}`;
  return Type.String({ minLength: 1, format: 'date-time-optional-offset', description });
}

export function optionalDateTime(): TUnsafe<string | null> {
  return Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time-optional-offset',
    description: dateTimeDescription,
  });
}

const dateFormat = '`YYYY-MM-DD`';

/** A day in the provider's time zone. `meaning` is a sentence. */
export function date(meaning: string): TString {
  return Type.String({ minLength: 1, format: 'date', description: `${meaning} ${dateFormat}.` });
}

export function optionalDate(meaning: string): TUnsafe<string | null> {
  return Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date',
    description: `${meaning} ${dateFormat}.`,
  });
}

/** What the clock on the wall shows. `meaning` is a sentence. */
export function timeOfDay(meaning: string): TString {
  return Type.String({ minLength: 1, format: 'time-of-day', description: `${meaning} \`HH:MM\`.` });
}

/** The end of something, which may be at 24:00. `meaning` is a sentence. */
export function endTimeOfDay(meaning: string): TString {
  return Type.String({ minLength: 1, format: 'end-time-of-day', description: `${meaning} \`HH:MM\`, or \`24:00\`.` });
}

/** Where no provider says in which time zone a local one would be. `meaning` is a sentence. */
export function nullableInstant(meaning: string): TUnsafe<string | null> {
  const description = `${meaning} A date-time with \`Z\` or a UTC offset, \`YYYY-MM-DDThh:mmZ\`; seconds are optional.`;
  return Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, format: 'instant', description });
}

export function integer(options: { minimum: number; maximum: number; description: string }): TInteger {
  return Type.Integer(options);
}

export function optionalInteger(options: {
  minimum: number;
  maximum: number;
  description: string;
}): TUnsafe<number | null> {
  return Type.Unsafe<number | null>({ type: ['integer', 'null'], ...options });
}

export function optionalBoolean(options: { description: string }): TUnsafe<boolean | null> {
  return Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], ...options });
}

/** One of a set of strings. */
export function oneOf<const Values extends readonly string[]>(
  values: Values,
  options: Options = {},
): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...options });
}

/**
 * A body of one of two kinds, distinguished by whether a field is {@link given}. The API document shows the two as
 * `anyOf`.
 */
export function alternative<With extends TSchema, Without extends TSchema>(
  field: string,
  withField: With,
  withoutField: Without,
  options: { examples?: unknown[] } = {},
): TUnsafe<Static<With> | Static<Without>> {
  return Type.Unsafe<Static<With> | Static<Without>>({
    type: 'object',
    if: { type: 'object', required: [field], properties: { [field]: { not: { enum: [null, ''] } } } },
    // eslint-disable-next-line unicorn/no-thenable -- the keyword of JSON Schema
    then: withField,
    else: withoutField,
    ...options,
  });
}

/**
 * A reference in the path. Its description must not mention encoding: client libraries encode path parameters, and a
 * reader would encode twice.
 */
export function pathReference(description: string): TString {
  return Type.String({ minLength: 1, maxLength: maxLineLength, format: 'line', description });
}

/** An optional string in the query, which may be empty. */
export function queryLine(description: string): TOptional<TString> {
  return Type.Optional(Type.String({ maxLength: maxLineLength, format: 'line', description }));
}

/** A body that a DELETE may have; some proxies drop it, so its fields may come in the query instead. */
export function optionalBody<Properties extends TProperties>(
  properties: Properties,
  options: { title: string; examples: unknown[] },
): TUnsafe<Static<TObject<Properties>> | null> {
  return Type.Unsafe<Static<TObject<Properties>> | null>({ type: ['object', 'null'], properties, ...options });
}

/**
 * A flag in the query, `true` or `false`. Optional for clients; a handler always sees a value, because validation sets
 * the default.
 */
export function flag(fallback: boolean, description: string): TUnsafe<boolean> {
  return Type.Optional(Type.Unsafe<boolean>({ type: 'boolean', default: fallback, description })) as TUnsafe<boolean>;
}

/** On creation, a field that is null or empty counts as absent. */
export function given<T>(value: T | null | undefined): T | undefined {
  return value === null || value === '' ? undefined : value;
}

/**
 * The {@link given} fields of an object. Takes only those that the schema names, so that clients cannot set other
 * fields of a message.
 */
export function givenFields<Properties extends TProperties>(
  schema: { properties: Properties },
  object: Static<TObject<Properties>>,
): GivenFields<Static<TObject<Properties>>> {
  const values = object as Record<string, unknown>;
  return Object.fromEntries(Object.keys(schema.properties).map((name) => [name, given(values[name])])) as GivenFields<
    Static<TObject<Properties>>
  >;
}

type GivenFields<Fields> = {
  [Name in keyof Fields]: null extends Fields[Name] ? NonNullable<Fields[Name]> | undefined : Fields[Name];
};

/** On an update, null clears a text (sent to the services as an empty string), and an absent one keeps its value. */
export function clearing(value: string | null | undefined): string | undefined {
  return value === null ? '' : value;
}

/** The longest value that is checked against a format, in UTF-16 code units; no field may be longer. */
export const maxFormattedLength = 2 * maxLongTextLength;

/**
 * String formats: which values pass, and the error for those that do not. Every format accepts the empty string;
 * required fields reject it by length. Ajv checks a format even if `maxLength` has already failed, so a longer value
 * than {@link maxFormattedLength} is rejected unseen, and each check takes time in proportion to the length.
 */
export const formats = {
  line: { passes: isLine, detail: 'must not contain control characters' },
  text: { passes: isText, detail: 'must not contain control characters other than tabs and line breaks' },
  email: { passes: (value) => value === '' || isEmailAddress(value), detail: 'must be an e-mail address' },
  // Clients take the segments . and .. out of a path, even if they are encoded (RFC 3986, 5.2.4): nobody could address
  // it.
  'path-segment': {
    passes: (value) => isLine(value) && value !== '.' && value !== '..',
    detail: 'must not be . or .., and must not contain control characters',
  },
  reference: {
    passes: (value) => value === '' || (isLine(value) && isUserReference(value)),
    detail: 'must have the format uniqueId@platformName',
  },
  // interface 2.1
  username: {
    passes: (value) =>
      value === '' ||
      (isLine(value) &&
        !/[/?:&#\\]/.test(value) &&
        /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800\uFFF9-\uFFFB]/u.test(value)),
    detail: 'must have a visible character, and must not contain / ? : & # \\ or control characters',
  },
  'date-time-optional-offset': {
    passes: (value) => value === '' || isLocalDateTime(value),
    detail:
      'must be a date-time in the format YYYY-MM-DDThh:mm, optionally with seconds, a fraction of up to 9 digits, and Z or a UTC offset',
  },
  instant: {
    passes: (value) => value === '' || (isLocalDateTime(value) && /[Z+-]/.test(value.slice(16))),
    detail:
      'must be a date-time in the format YYYY-MM-DDThh:mm with Z or a UTC offset, optionally with seconds and a fraction of up to 9 digits',
  },
  date: {
    passes: (value) => value === '' || isDate(value),
    detail: 'must be a date in the format YYYY-MM-DD, from 1900 to 9998',
  },
  'time-of-day': {
    passes: (value) => value === '' || isTimeOfDay(value),
    detail: 'must be a time of day in the format HH:MM, from 00:00 to 23:59',
  },
  'end-time-of-day': {
    passes: (value) => value === '' || value === '24:00' || isTimeOfDay(value),
    detail: 'must be a time of day in the format HH:MM, from 00:00 to 24:00',
  },
  'language-tag': {
    passes: (value) => value === '' || parseLanguageTag(value) !== undefined,
    detail: 'must be a language tag such as de or en',
  },
} satisfies Record<string, { passes: (value: string) => boolean; detail: string }>;

export type FieldFormat = keyof typeof formats;

/** Exactly one `@`, with text on both sides (interface 1, References). */
function isUserReference(value: string): boolean {
  const parts = value.split('@', 3);
  return parts.length === 2 && parts.every((part) => part.trim() !== '');
}

function isLine(value: string): boolean {
  return value.isWellFormed() && !/[\p{Cc}\u2028\u2029]/u.test(value);
}

function isText(value: string): boolean {
  return value.isWellFormed() && !/[^\P{Cc}\t\n\r]/u.test(value);
}

/**
 * A valid value as the services read it: date-times without a fraction of a second, which is cut off, and with a colon
 * in the offset. It is done here, for all fields, because a service of a version before that takes a date-time with
 * another offset for a local one.
 */
export function normalize(value: string, format: string | undefined): string {
  if (format !== 'date-time-optional-offset' && format !== 'instant') return value;
  return value.replace(/\.\d+/, '').replace(/([+-]\d\d)(\d\d)$/, '$1:$2');
}

/** Years that every part of the system can represent: a four-digit year in input and output, in any time zone. */
const [firstYear, lastYear] = [1900, 9998];

function isLocalDateTime(value: string): boolean {
  const match = /^(\d{4})-\d\d-\d\dT\d\d:\d\d(?::[0-5]\d(?:\.\d{1,9})?)?(Z|[+-](?:0\d|1[0-4]):?[0-5]\d)?$/.exec(value);
  if (match === null) return false;
  const year = Number(match[1]);
  if (year < firstYear || year > lastYear) return false;
  try {
    Temporal.PlainDateTime.from(match[2] === undefined ? value : value.slice(0, -match[2].length), {
      overflow: 'reject',
    });
    return true;
  } catch {
    return false;
  }
}

/** The day of a date-time. */
function isDate(value: string): boolean {
  return isLocalDateTime(`${value}T00:00`);
}

function isTimeOfDay(value: string): boolean {
  return /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(value);
}
