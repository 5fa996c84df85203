import { describe, expect, it } from 'vitest';
import { decideOnWait, exhaustedQuota, firstWindowWithRoom } from './check-quotas.ts';

const hourMs = 3_600_000;
const noon = new Date('2026-01-02T12:00:00Z');
const hoursAfter = (hours: number) => new Date(noon.getTime() + hours * hourMs);

describe('a quota', () => {
  const quotas = { toOneRecipient: 20, inTotal: 3_000 };

  it('is exhausted by as many mails as it allows', () => {
    expect(exhaustedQuota({ toRecipient: 19, inTotal: 2_999 }, quotas)).toBeUndefined();
    expect(exhaustedQuota({ toRecipient: 20, inTotal: 20 }, quotas)).toBe('recipient-quota');
    expect(exhaustedQuota({ toRecipient: 1, inTotal: 3_000 }, quotas)).toBe('crm-quota');
  });

  it('of 0 is never exhausted', () => {
    expect(exhaustedQuota({ toRecipient: 500, inTotal: 5_000 }, { toOneRecipient: 0, inTotal: 0 })).toBeUndefined();
  });
});

describe('a mail over quota', () => {
  const waitFor = (lastHeld?: { dueAt: Date; count: number }) => firstWindowWithRoom(noon, lastHeld, 20, hourMs);

  it('waits for the first hour for which fewer mails wait than can be sent in it', () => {
    expect(waitFor()).toEqual({ until: noon, room: 20 });
    expect(waitFor({ dueAt: noon, count: 19 })).toEqual({ until: noon, room: 1 });
    expect(waitFor({ dueAt: noon, count: 20 })).toEqual({ until: hoursAfter(1), room: 20 });
    expect(waitFor({ dueAt: hoursAfter(3), count: 1 })).toEqual({ until: hoursAfter(3), room: 19 });
  });

  it('is dropped if that begins more than 24 hours after it was stored', () => {
    const decide = (storedHoursBefore: number) =>
      decideOnWait('recipient-quota', { until: noon, room: 20 }, hoursAfter(-storedHoursBefore), 24 * hourMs);
    expect(decide(24)).toEqual({
      outcome: 'hold',
      until: noon,
      room: 20,
      reason: 'recipient-quota',
      serverAway: false,
    });
    expect(decide(24.1)).toEqual({
      outcome: 'drop',
      storedBefore: hoursAfter(-24),
      reason: 'recipient-quota',
      serverAway: false,
    });
  });
});
