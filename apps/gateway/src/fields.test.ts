import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { clearing, formats, given, givenFields, line, optionalLine } from './fields.ts';

describe('a local date-time', () => {
  it.each([
    '2030-01-01T00:00',
    '2028-02-29T23:59:59',
    '2030-01-01T10:00Z',
    '2030-01-01T10:00:00+14:00',
    '1900-01-01T00:00',
    '2030-01-01T10:00:00.000Z',
    '2030-01-01T10:00:00.123456',
    '2030-01-01T10:00:00.123456789-0330',
    '2030-01-01T10:00+0200',
  ])('may be %s', (value) => {
    expect(formats['date-time-optional-offset'].passes(value)).toBe(true);
  });

  it.each([
    '2100-02-29T10:00',
    '1899-12-31T23:59',
    '9999-01-01T00:00',
    '2030-01-01T10:00+15:00',
    '2030-01-01t10:00',
    '2030-1-1T10:00',
    ' 2030-01-01T10:00',
    '2030-01-01T10:00.5',
    '2030-01-01T10:00:00.',
    '2030-01-01T10:00:00,5',
    '2030-01-01T10:00:00.1234567891',
    '2030-01-01T10:00+02',
    '2030-01-01T10:00+1500',
  ])('is not %s', (value) => {
    expect(formats['date-time-optional-offset'].passes(value)).toBe(false);
  });
});

describe('an instant', () => {
  it.each([
    '2030-01-01T10:00Z',
    '2030-01-01T10:00:00Z',
    '2030-01-01T10:00:00+14:00',
    '2030-01-01T10:00-03:30',
    '2030-01-01T10:00:00.000Z',
    '2030-01-01T10:00:00+0200',
  ])('may be %s', (value) => {
    expect(formats.instant.passes(value)).toBe(true);
  });

  it.each([
    '2030-01-01T10:00',
    '2030-01-01T10:00:00',
    '2030-01-01',
    '2030-02-30T10:00Z',
    '2030-01-01T10:00+15:00',
    'Z',
  ])('is not %s', (value) => {
    expect(formats.instant.passes(value)).toBe(false);
  });
});

describe('a date', () => {
  it.each(['2030-01-01', '2028-02-29', '1900-01-01', '9998-12-31'])('may be %s', (value) => {
    expect(formats.date.passes(value)).toBe(true);
  });

  it.each([
    '2030-02-30',
    '2030-13-01',
    '2100-02-29',
    '1899-12-31',
    '9999-01-01',
    '2030-1-1',
    '20300101',
    '+002030-01-01',
    '2030-01-01T10:00',
    '2030-01-01[u-ca=hebrew]',
    ' 2030-01-01',
    '2030-01-01\n',
  ])('is not %j', (value) => {
    expect(formats.date.passes(value)).toBe(false);
  });
});

describe('a time of day', () => {
  it.each(['00:00', '09:05', '23:59'])('may be %s, also as an end', (value) => {
    expect(formats['time-of-day'].passes(value)).toBe(true);
    expect(formats['end-time-of-day'].passes(value)).toBe(true);
  });

  it('may be 24:00 only as an end', () => {
    expect(formats['time-of-day'].passes('24:00')).toBe(false);
    expect(formats['end-time-of-day'].passes('24:00')).toBe(true);
  });

  it.each(['9:00', '09:60', '24:01', '25:00', '09:00:00', '0900', '09.00', 'T09:00', '09:00Z', ' 09:00', '09:00\n'])(
    'is not %j',
    (value) => {
      expect(formats['time-of-day'].passes(value)).toBe(false);
      expect(formats['end-time-of-day'].passes(value)).toBe(false);
    },
  );
});

describe('an e-mail address', () => {
  it.each(['a@b', "o'neill+x@sub.example.org", 'jörg@bücher.example', '用户@例え.jp'])('may be %s', (value) => {
    expect(formats.email.passes(value)).toBe(true);
  });

  it.each(['a', '@b', 'a@', 'a@b@c', 'a b@c', 'a@b.', 'a@.b', '"a"@b', 'a@b\n', `${'a'.repeat(65)}@b`, 'a@b,c'])(
    'is not %j',
    (value) => {
      expect(formats.email.passes(value)).toBe(false);
    },
  );
});

describe('a reference', () => {
  it.each(['a', '...', './..', '%2e', ' .', '.\u200B'])('may be %j', (value) => {
    expect(formats['path-segment'].passes(value)).toBe(true);
  });

  it.each(['.', '..', 'a\nb'])('is not %j', (value) => {
    expect(formats['path-segment'].passes(value)).toBe(false);
  });
});

describe('an optional value', () => {
  it('that is null or empty counts as absent', () => {
    expect([given(null), given(''), given(undefined), given('x'), given(0), given(false)]).toEqual([
      undefined,
      undefined,
      undefined,
      'x',
      0,
      false,
    ]);
  });

  it('clears if it is null, and keeps if it is absent', () => {
    expect([clearing(null), clearing(''), clearing(undefined), clearing('x')]).toEqual(['', '', undefined, 'x']);
  });
});

it('takes the given fields of a body, and only those that its schema names', () => {
  const schema = Type.Object({
    reference: line(),
    note: Type.Optional(optionalLine()),
    phone: Type.Optional(optionalLine()),
    count: Type.Integer(),
  });
  const body = { reference: 'r', note: '', phone: null, count: 0, crmId: 'another' };
  expect(givenFields(schema, body)).toEqual({ reference: 'r', note: undefined, phone: undefined, count: 0 });
});
