import { describe, expect, it } from 'vitest';
import { describeError } from './logger.ts';

describe('a logged error', () => {
  it('keeps what a developer needs, including its cause', () => {
    const error = new TypeError('outer', { cause: Object.assign(new Error('inner'), { code: 'ECONNREFUSED' }) });
    expect(describeError(error)).toEqual({
      type: 'TypeError',
      message: 'outer',
      stack: error.stack,
      cause: { type: 'Error', code: 'ECONNREFUSED', message: 'inner', stack: (error.cause as Error).stack },
    });
  });

  it('contains no values of a row', () => {
    const error = Object.assign(new Error('invalid input syntax for type uuid: "ada@example.com"'), {
      code: '22P02',
      severity: 'ERROR',
      detail: 'Key (email)=(ada@example.com) already exists.',
      where: 'unnamed portal parameter $1 = ada@example.com',
    });
    expect(JSON.stringify(describeError(error))).not.toContain('ada');
  });

  it('contains nothing if it is not an Error', () => {
    expect(describeError('ada@example.com')).toEqual({ type: 'string', message: 'not an Error' });
  });
});
