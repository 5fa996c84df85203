import type { FieldErrors } from '@scheduling/errors';
import { isUuid } from './uuid.ts';

/** Where a page of a list ended, as a text that is opaque to clients. */
export interface Cursor<Position> {
  encode(position: Position): string;
  /** Undefined for a text that {@link encode} did not produce. */
  decode(cursor: string): Position | undefined;
}

/** How a value is written in a cursor: without spaces. */
export interface CursorField<Value> {
  write(value: Value): string;
  /** Undefined for a text that is no such value. It may accept other spellings, the cursor does not. */
  read(text: string): Value | undefined;
}

/** The cursors of a list whose positions have these fields. */
export function createCursor<Position extends object>(fields: {
  [Name in keyof Position]-?: CursorField<Position[Name]>;
}): Cursor<Position> {
  const names = Object.keys(fields) as (keyof Position)[];
  const encode = (position: Position): string =>
    Buffer.from(names.map((name) => fields[name].write(position[name])).join(' ')).toString('base64url');
  return {
    encode,
    decode: (cursor) => {
      const texts = Buffer.from(cursor, 'base64url').toString().split(' ');
      const values = names.map((name, index) => fields[name].read(texts[index] ?? ''));
      if (values.includes(undefined)) return undefined;
      const position = Object.fromEntries(names.map((name, index) => [name, values[index]])) as Position;
      return encode(position) === cursor ? position : undefined;
    },
  };
}

/** An id, or the text that stands for none. */
export function idField(none?: string): CursorField<string> {
  return { write: (id) => id, read: (text) => (text === none || isUuid(text) ? text : undefined) };
}

/** The cursors of a list that is ordered by id only: the id itself. */
export const idCursor: Cursor<string> = { encode: (id) => id, decode: idField().read };

/** Where the page of a request begins: undefined if it has no cursor, or if that is invalid, which is then an error. */
export function readCursor<Position>(
  cursor: Cursor<Position>,
  text: string | undefined,
  errors: FieldErrors,
): Position | undefined {
  if (text === undefined) return undefined;
  const position = cursor.decode(text);
  if (position === undefined) errors.add('/cursor', 'is not a valid cursor');
  return position;
}
