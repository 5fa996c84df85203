import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger, describeError, type Logger } from './logger.ts';
import { runWithContext } from './request-context.ts';

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

describe('lines that repeat', () => {
  let logger: Logger;
  let lines: Record<string, unknown>[];

  beforeEach(() => {
    vi.useFakeTimers();
    lines = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    logger = createLogger({ service: 'test', level: 'debug' }, { write });
  });
  afterEach(() => void vi.useRealTimers());

  const failure = (code: string): Error => Object.assign(new Error('failed'), { code });
  const times = (count: number, work: (index: number) => void): void => {
    for (let index = 0; index < count; index += 1) work(index);
  };
  const summaries = () => lines.filter((line) => 'suppressed' in line);

  it('are written ten times in a second, and then their number', () => {
    times(1_000, (index) => logger.error({ err: failure('ECONNREFUSED'), index }, 'call failed'));
    expect(lines.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    vi.advanceTimersByTime(1_000);
    expect(summaries()).toEqual([
      {
        level: 'error',
        time: expect.any(String),
        service: 'test',
        suppressed: 990,
        code: 'ECONNREFUSED',
        msg: 'call failed',
      },
    ]);
    logger.error({ err: failure('ECONNREFUSED'), index: 1_000 }, 'call failed');
    expect(lines.at(-1)).toMatchObject({ index: 1_000 });
    vi.advanceTimersByTime(10_000);
    expect(lines).toHaveLength(12);
  });

  it('are counted for each level, message and error', () => {
    times(11, () => {
      logger.warn('one');
      logger.error('one');
      logger.warn('other');
      logger.warn({ err: failure('A') }, 'other');
      logger.warn({ err: failure('B') }, 'other');
      logger.warn(failure('B'), 'other');
      logger.warn({ err: new TypeError('failed') }, 'other');
      logger.error(failure('C'));
    });
    vi.advanceTimersByTime(1_000);
    expect(summaries().map(({ level, msg, suppressed }) => [level, msg, suppressed])).toEqual([
      ['warn', 'one', 1],
      ['error', 'one', 1],
      ['warn', 'other', 1],
      ['warn', 'other', 1],
      ['warn', 'other', 12],
      ['warn', 'other', 1],
      ['error', 'failed', 1],
    ]);
  });

  it('are others if the message of the error or the method is another one, numbers aside', () => {
    times(20, (index) => logger.error({ err: new TypeError(`row ${index}`), method: '/a' }, 'unexpected error'));
    logger.error({ err: new TypeError('a new defect'), method: '/a' }, 'unexpected error');
    logger.error({ err: new TypeError('row 20'), method: '/b' }, 'unexpected error');
    expect(lines.slice(10)).toMatchObject([{ err: { message: 'a new defect' } }, { method: '/b' }]);
    vi.advanceTimersByTime(1_000);
    expect(summaries()).toMatchObject([{ suppressed: 10, code: 'TypeError' }]);
  });

  it('are all written if there are few in each second, or if they are no warnings', () => {
    times(5, () => {
      times(10, () => logger.warn('slow'));
      vi.advanceTimersByTime(1_000);
    });
    times(100, () => logger.info('request'));
    times(100, () => logger.debug('detail'));
    vi.advanceTimersByTime(1_000);
    expect(lines).toHaveLength(250);
    expect(summaries()).toEqual([]);
  });

  it('are counted together for all children, and their number belongs to no request', () => {
    const children = [logger.child({ component: 'one' }), logger.child({ component: 'two' })];
    runWithContext({ requestId: 'r1' }, () => times(20, (index) => children[index % 2]!.warn('call failed')));
    vi.advanceTimersByTime(1_000);
    expect(lines.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => expect.objectContaining({ requestId: 'r1' })));
    expect(lines).toHaveLength(11);
    expect(lines.at(-1)).toMatchObject({ suppressed: 10 });
    expect(lines.at(-1)).not.toHaveProperty('requestId');
    expect(lines.at(-1)).not.toHaveProperty('component');
  });

  it('have their number written before the line that ends the process', () => {
    times(15, () => logger.error('call failed'));
    logger.fatal('the process exits');
    expect(lines.slice(10).map(({ msg, suppressed }) => [msg, suppressed])).toEqual([
      ['call failed', 5],
      ['the process exits', undefined],
    ]);
  });

  it('are forgotten when there are too many others, and none is lost', () => {
    times(15, () => logger.error('call failed'));
    times(1_000, (index) => logger.error(`message ${index}`));
    expect(summaries()).toMatchObject([{ msg: 'call failed', suppressed: 5 }]);
    expect(lines).toHaveLength(1_011);
  });

  it('have their number written while the process is busy, and when it exits', async () => {
    const program = `
      import { createLogger } from '${new URL('logger.ts', import.meta.url).href}';
      const logger = createLogger({ service: 'test', level: 'info' });
      const write = () => { for (let line = 1; line <= 15; line += 1) logger.warn('call failed'); };
      write();
      const beganMs = performance.now();
      while (performance.now() - beganMs < 1_000);
      write();
      process.exit(3);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
    const { code, stdout } = await run.then(
      () => expect.unreachable('it exits with 3'),
      (error: { code: number; stdout: string }) => error,
    );
    expect(code).toBe(3);
    const written = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { suppressed?: number });
    const once = [...Array.from({ length: 10 }, () => undefined), 5];
    expect(written.map(({ suppressed }) => suppressed)).toEqual([...once, ...once]);
  });
});
