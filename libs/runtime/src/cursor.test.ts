import { collectFieldErrors } from '@scheduling/errors';
import { describe, expect, it } from 'vitest';
import { createCursor, idCursor, idField, readCursor } from './cursor.ts';

const id = '0199d6a5-7c1e-7abc-8def-0123456789ab';
const count = { write: String, read: (text: string) => (Number(text) >= 0 ? Number(text) : undefined) };
const cursor = createCursor({ count, id: idField(), other: idField('~') });
const textOf = (text: string): string => Buffer.from(text).toString('base64url');

describe('a cursor', () => {
  it.each([
    { count: 3, id, other: id },
    { count: 0, id, other: '~' },
  ])('decodes to the position it was encoded from', (position) => {
    expect(cursor.decode(cursor.encode(position))).toEqual(position);
  });

  it.each([
    '',
    'x',
    textOf(''),
    textOf(`3 ${id}`),
    textOf(`3 ${id} `),
    textOf(`3 ${id} ${id} ${id}`),
    textOf(`3 ~ ${id}`),
    textOf(`-1 ${id} ${id}`),
    textOf(`NaN ${id} ${id}`),
    textOf(`0x3 ${id} ${id}`),
    textOf(` ${id} ${id}`),
    textOf(`3  ${id} ${id}`),
    `${textOf(`3 ${id} ${id}`)}=`,
    `${textOf(`3 ${id} ${id}`)}.`,
    idCursor.encode(id),
  ])('%j is not valid', (text) => {
    expect(cursor.decode(text)).toBeUndefined();
  });
});

it('of a list by id is the id', () => {
  expect(idCursor.decode(idCursor.encode(id))).toBe(id);
  for (const text of ['', 'x', textOf(id), `${id} `]) expect(idCursor.decode(text)).toBeUndefined();
});

it('that is not valid is an error that names the field, and none is none', () => {
  const errors = collectFieldErrors();
  expect(readCursor(idCursor, undefined, errors)).toBeUndefined();
  expect(readCursor(idCursor, id, errors)).toBe(id);
  errors.throwIfAny('customer.invalid');
  expect(readCursor(idCursor, 'x', errors)).toBeUndefined();
  expect(() => errors.throwIfAny('customer.invalid')).toThrow(
    expect.objectContaining({ errors: [{ pointer: '/cursor', detail: 'is not a valid cursor' }] }),
  );
});
