import type { Location, PostalAddress } from '@scheduling/contracts/calendar/v1';
import { type Static, type TUnsafe, Type } from 'typebox';
import { givenFields, maxMessageLength, optionalLine } from '../fields.ts';
import { nullable, nullableString } from '../schemas.ts';

/**
 * The address of timeslots and appointments: fields, or free text such as a link to a video call. It is returned as it
 * was given.
 */

const addressFields = Type.Object({
  city: Type.Optional(optionalLine()),
  zip: Type.Optional(optionalLine()),
  country: Type.Optional(optionalLine()),
  countryCode: Type.Optional(
    optionalLine({ description: 'Alias of `country`, so that a returned address can be sent back.' }),
  ),
  street: Type.Optional(optionalLine()),
  number: Type.Optional(optionalLine()),
});

type AddressInput = Static<typeof addressFields>;

export function toLocation(input: AddressInput | string | null | undefined): Location | undefined {
  if (input === null || input === undefined || input === '') return undefined;
  if (typeof input === 'string') return { kind: { $case: 'text', value: input } };
  const { country, countryCode, ...lines } = givenFields(addressFields, input);
  return { kind: { $case: 'address', value: { ...lines, countryCode: country ?? countryCode } } };
}

export const addressInput: TUnsafe<AddressInput | string | null> = Type.Unsafe({
  title: 'NewAddress',
  type: ['object', 'string', 'null'],
  description: 'An address object, or a string such as a link to a video call.',
  maxLength: maxMessageLength,
  format: 'text',
  properties: addressFields.properties,
});

const addressNames = ['city', 'countryCode', 'street', 'number', 'zip'];

export const address = nullable<PostalAddress | string>({
  title: 'Address',
  type: ['object', 'string'],
  description: 'As given on creation: an address object or a string.',
  required: addressNames,
  properties: Object.fromEntries(addressNames.map((name) => [name, nullableString()])),
});
