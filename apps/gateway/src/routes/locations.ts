import type { Location } from '@scheduling/contracts/calendar/v1';
import { type TUnsafe, Type } from 'typebox';
import { given, maxMessageLength, optionalLine } from '../fields.ts';

/** The address of timeslots and appointments: fields, or a free text such as a link to a video call. It comes back as it was given. */

interface AddressInput {
  city?: string | null;
  zip?: string | null;
  country?: string | null;
  /** What the service returns for `country`, so that it can be sent back. */
  countryCode?: string | null;
  street?: string | null;
  number?: string | null;
}

export function toLocation(input: AddressInput | string | null | undefined): Location | undefined {
  if (input === null || input === undefined || input === '') return undefined;
  if (typeof input === 'string') return { kind: { $case: 'text', value: input } };
  return {
    kind: {
      $case: 'address',
      value: {
        city: given(input.city),
        countryCode: given(input.country) ?? given(input.countryCode),
        street: given(input.street),
        number: given(input.number),
        zip: given(input.zip),
      },
    },
  };
}

export function presentLocation(location: Location | undefined) {
  const kind = location?.kind;
  if (kind === undefined) return null;
  if (kind.$case === 'text') return kind.value;
  const { city, countryCode, street, number, zip } = kind.value;
  return { city: city ?? null, countryCode: countryCode ?? null, street: street ?? null, number: number ?? null, zip: zip ?? null };
}

export const addressInput: TUnsafe<AddressInput | string | null> = Type.Unsafe({
  type: ['object', 'string', 'null'],
  description: 'An address object, or a string such as a link to a video call.',
  maxLength: maxMessageLength,
  format: 'text',
  properties: {
    city: optionalLine(),
    zip: optionalLine(),
    country: optionalLine(),
    countryCode: optionalLine({ description: 'Alias of `country`, so that a returned address can be sent back.' }),
    street: optionalLine(),
    number: optionalLine(),
  },
});

const nullableText = { type: ['string', 'null'] };

export const address: TUnsafe<ReturnType<typeof presentLocation>> = Type.Unsafe({
  type: ['object', 'string', 'null'],
  description: 'As given on creation: an address object or a string.',
  required: ['city', 'countryCode', 'street', 'number', 'zip'],
  properties: { city: nullableText, countryCode: nullableText, street: nullableText, number: nullableText, zip: nullableText },
});
