import { describe, expect, it } from 'vitest';
import { decideAfterFailure, type Failure } from './decide-after-failure.ts';
import { defaultTimings } from './timings.ts';

const createdAt = new Date('2026-01-01T00:00:00Z');
const after = (seconds: number) => new Date(createdAt.getTime() + seconds * 1_000);
const decide = (
  error: object,
  failure: Partial<Failure> = {},
  mail: { attempts?: number; uncertain?: boolean } = {},
  now = createdAt,
) =>
  decideAfterFailure(
    { error, connected: true, handedOver: false, stopped: false, ...failure },
    { attempts: 0, uncertain: false, createdAt, ...mail },
    now,
    defaultTimings,
  );

describe('after a failed attempt', () => {
  it.each([
    ['a temporary refusal', { code: 'EMESSAGE', responseCode: 451, command: 'DATA' }],
    ['a server that hangs up', { code: 'ECONNECTION', responseCode: 421, command: 'CONN' }],
    ['a connection that was lost before the mail was written', { code: 'ECONNECTION', command: 'CONN' }],
  ])('waits longer each time after %s', (_, error) => {
    const delays = [0, 1, 2, 12].map((attempts) => decide(error, {}, { attempts }));
    expect(delays).toMatchObject([1_000, 2_000, 4_000, 600_000].map((afterMs) => ({ outcome: 'retry', afterMs })));
  });

  it.each([
    ['a refused recipient', { code: 'EENVELOPE', responseCode: 550, command: 'RCPT TO' }, 'EENVELOPE RCPT TO 550'],
    ['a refused sender', { code: 'EENVELOPE', responseCode: 553, command: 'MAIL FROM' }, 'EENVELOPE MAIL FROM 553'],
    ['a refused text', { code: 'EMESSAGE', responseCode: 554, command: 'DATA' }, 'EMESSAGE DATA 554'],
    ['an address that cannot be written', { code: 'EENVELOPE', command: 'API' }, 'EENVELOPE API'],
  ])('gives up after %s', (_, error, reason) => {
    expect(decide(error)).toEqual({ outcome: 'give-up', reason });
  });

  it.each([
    ['is away', { code: 'ESOCKET', command: 'CONN' }, { connected: false }],
    ['refuses every connection', { code: 'EPROTOCOL', responseCode: 554, command: 'CONN' }, { connected: false }],
    ['refuses the login', { code: 'EAUTH', responseCode: 535, command: 'AUTH PLAIN' }, { connected: false }],
    ['offers no STARTTLS', { code: 'ETLS', responseCode: 502, command: 'STARTTLS' }, { connected: false }],
    ['has a certificate that is not trusted', { code: 'ETLS', command: 'STARTTLS' }, { connected: false }],
    ['wants a login', { code: 'EENVELOPE', responseCode: 530, command: 'MAIL FROM' }, {}],
  ])('lets the mail keep its turn when the server %s', (_, error, failure) => {
    expect(decide(error, failure, { attempts: 50 })).toMatchObject({ outcome: 'postpone', serverAway: true });
  });

  it('gives up after 24 hours', () => {
    const error = { code: 'EMESSAGE', responseCode: 451, command: 'DATA' };
    expect(decide(error, {}, { attempts: 50 }, after(24 * 3_600))).toMatchObject({ outcome: 'retry' });
    expect(decide(error, {}, { attempts: 50 }, after(24 * 3_600 + 1))).toMatchObject({ outcome: 'give-up' });
    expect(decide({ code: 'ESOCKET' }, { connected: false }, {}, after(24 * 3_600 + 1))).toMatchObject({
      outcome: 'give-up',
    });
  });

  it('retries once, after 10 minutes, when the connection was lost after the mail was written, however often it was rejected before', () => {
    const error = { code: 'ECONNECTION', command: 'CONN' };
    expect(decide(error, { handedOver: true }, { attempts: 7 })).toMatchObject({
      outcome: 'retry-once',
      afterMs: 600_000,
    });
    expect(decide(error, { handedOver: true }, { uncertain: true })).toMatchObject({ outcome: 'give-up' });
    expect(decide(error, { handedOver: true, stopped: true })).toMatchObject({ outcome: 'retry-once' });
  });

  it('retries as usual when the mail was rejected after it was written', () => {
    expect(decide({ code: 'EMESSAGE', responseCode: 451, command: 'DATA' }, { handedOver: true })).toMatchObject({
      outcome: 'retry',
    });
  });

  it('postpones the mail when the process stops', () => {
    expect(decide(new Error('aborted'), { stopped: true })).toEqual({
      outcome: 'postpone',
      reason: 'stopped',
      serverAway: false,
    });
  });
});
