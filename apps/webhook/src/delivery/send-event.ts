import type { PostResult, Poster } from '../endpoint/post.ts';
import type { EventJson } from '../feed/describe-events.ts';
import { openPreviousSecret } from '../webhook/open-previous-secret.ts';
import type { Sealer } from '../webhook/seal.ts';
import { signatureHeaders } from '../webhook/sign.ts';
import { secretContext, type WebhookRow } from '../webhook/webhook.ts';

export interface EventSender {
  poster: Poster;
  sealer: Sealer;
}

/**
 * Sends one event to a webhook, signed as Standard Webhooks 1.0 demands; for a day after a rotation with the previous
 * secret, too. Rejects if the secret cannot be opened, because its sealing key is missing.
 *
 * @param sentAt the time for the signature, which receivers compare with their own
 */
export async function sendEvent(
  { poster, sealer }: EventSender,
  webhook: WebhookRow,
  { event, sentAt }: { event: EventJson; sentAt: Date },
  signal: AbortSignal,
): Promise<PostResult> {
  const previous = openPreviousSecret(sealer, webhook, sentAt);
  const secrets = [sealer.open(webhook.secret, secretContext(webhook)), ...(previous === undefined ? [] : [previous])];
  const body = JSON.stringify(event);
  return poster.post(webhook.url, signatureHeaders(secrets, { id: event.id, sentAt, body }), body, signal);
}
