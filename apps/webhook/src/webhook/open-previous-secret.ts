import { secretContext, type WebhookRow } from './webhook.ts';
import type { Sealer } from './seal.ts';

/**
 * The secret before the last rotation, as long as it signs, too. Undefined also if its sealing key is missing: then a
 * rotation must help at once, and events are signed with the new secret only.
 */
export function openPreviousSecret(sealer: Sealer, webhook: WebhookRow, now: Date): string | undefined {
  const { previousSecret, previousSecretUntil } = webhook;
  if (previousSecret === null || previousSecretUntil === null || previousSecretUntil <= now) return undefined;
  try {
    return sealer.open(previousSecret, secretContext(webhook));
  } catch {
    return undefined;
  }
}
