import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { contentDigest } from './content-digest.ts';

it('digests a field under the name of its column, as in all stored digests', () => {
  const start = new Date('2030-05-06T07:00:00Z');
  const json = '["2030-05-06T07:00:00.000Z",{"accept_bookings":true,"notes":null},[["r",null]]]';
  expect(contentDigest([start, { acceptBookings: true, notes: null }, [['r', undefined]]])).toEqual(
    createHash('sha256').update(json).digest(),
  );
});
