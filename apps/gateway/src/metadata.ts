import type { Metadata } from '@scheduling/contracts/metadata/v1';
import { type TOptional, type TUnsafe, Type } from 'typebox';
import { nullable } from './schemas.ts';

/** What a CRM notes of an object (interface 1, Metadata). */
type Pairs = Record<string, string>;

const pairs = {
  type: 'object',
  maxProperties: 20,
  // The name is no property of its own in JavaScript.
  propertyNames: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,40}$', not: { const: '__proto__' } },
  additionalProperties: { type: 'string', minLength: 1, maxLength: 500, format: 'text' },
};

const keysAndValues =
  'At most 20 keys of 1 to 40 of the characters `A-Z a-z 0-9 _ . -`, with values of 1 to 500 characters.';

/** In a request. `meaning` is a sentence. */
export function metadataInput(meaning: string): TOptional<TUnsafe<Pairs | null>> {
  return Type.Optional(
    Type.Unsafe<Pairs | null>({ ...pairs, type: ['object', 'null'], description: `${meaning} ${keysAndValues}` }),
  );
}

/** Each pair is a parameter of its own, such as `metadata[tier]=gold`. `objects` is a plural, such as `customers`. */
export function metadataFilter(objects: string): TOptional<TUnsafe<Pairs>> {
  return Type.Optional(
    Type.Unsafe<Pairs>({
      ...pairs,
      style: 'deepObject',
      explode: true,
      description: `Only ${objects} that have all of these pairs in their metadata: \`metadata[tier]=gold\`. Values are compared exactly.`,
    }),
  );
}

/** In an answer. */
export const metadata = nullable<Pairs>({
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'What the CRM notes of it. No person sees it.',
});

/** Of something that is created, or in a filter. In the order of the keys, as the message has it. */
export function toMetadata(input: Pairs | null | undefined): Metadata | undefined {
  const change = toMetadataChange(input);
  return change === undefined || Object.keys(change.pairs).length === 0 ? undefined : change;
}

/** On an update: null and an object without pairs clear it. */
export function toMetadataChange(input: Pairs | null | undefined): Metadata | undefined {
  if (input === undefined) return undefined;
  const entries = Object.entries(input ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return { pairs: Object.fromEntries(entries) };
}
