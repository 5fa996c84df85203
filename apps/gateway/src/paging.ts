import { Type } from 'typebox';
import { integer } from './fields.ts';

/** Without these parameters a list is returned in full. */
export const pageFields = {
  limit: Type.Optional(
    integer({
      minimum: 1,
      maximum: 1_000,
      description: 'Maximum number of elements per page. The URL of the next page is in the `Link` header.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_024,
      format: 'line',
      description: 'Where the page starts, as given in the `Link` header of the previous page.',
    }),
  ),
};

/** The header of every page but the last, as the API document describes it. */
export const linkHeader = {
  Link: {
    type: 'string',
    description: 'With `limit`: the URL of the next page, `<…>; rel="next"`. Absent on the last page.',
  },
};

/**
 * The value of the `Link` header (RFC 8288): the address of the request with another position, or without one if that
 * is empty.
 */
export function linkToNext(
  publicUrl: string,
  requestUrl: string,
  parameter: 'cursor' | 'after',
  position: string,
): string {
  const url = new URL(publicUrl + requestUrl);
  if (position === '') url.searchParams.delete(parameter);
  else url.searchParams.set(parameter, position);
  return `<${url.href}>; rel="next"`;
}
