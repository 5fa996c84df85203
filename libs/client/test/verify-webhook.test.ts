import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { verifyWebhook, WebhookVerificationError } from '../src/verify-webhook.ts';

const secret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDXKz1u0f3Q9U=';
const event = { id: '01a20aed-38f1-71e7-8939-be7cf9ed034e', type: 'customer.created' };
const body = JSON.stringify(event);

function sign(at = new Date()): Record<string, string> {
  const signature = new Webhook(secret).sign(event.id, at, body);
  return {
    'webhook-id': event.id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signature,
  };
}

describe('the verification of a webhook', () => {
  it('returns the event', () => {
    expect(verifyWebhook(secret, body, sign())).toEqual(event);
    expect(verifyWebhook(secret, body, new Headers(sign()))).toEqual(event);
    expect(verifyWebhook(secret, body, { ...sign(), 'webhook-id': [event.id], cookie: undefined })).toEqual(event);
  });

  it.each([
    ['another body', `${body} `, sign()],
    ['an old signature', body, sign(new Date(Date.now() - 10 * 60_000))],
    ['no signature', body, {}],
    ['two timestamps', body, { ...sign(), 'webhook-timestamp': ['1', '2'] }],
  ])('rejects %s', (_, received, headers) => {
    expect(() => verifyWebhook(secret, received, headers)).toThrow(WebhookVerificationError);
  });
});
