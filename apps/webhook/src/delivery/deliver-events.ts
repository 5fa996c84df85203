import { databaseTime, type DeliveryKind, startDelivery } from '@scheduling/delivery';
import { DomainError } from '@scheduling/errors';
import { describeError, type Logger } from '@scheduling/runtime';
import type { WebhookDependencies } from '../dependencies.ts';
import { readEvents } from '../feed/read-events.ts';
import { describeEvents } from '../feed/describe-events.ts';
import { decideAfterFailure, isDelivered } from './decide-after-failure.ts';
import { isHeld, recordAttempt, recordResult, type Result } from './record-result.ts';
import { sendEvent } from './send-event.ts';
import type { WebhookTimings } from './timings.ts';
import { type LeasedWebhook, webhookTable } from './webhook-table.ts';

export interface WebhookDeliveryOptions {
  dependencies: WebhookDependencies;
  /** How many webhooks are sent events concurrently. */
  connections: number;
  timings: WebhookTimings;
  /** Called with the result of every lease, for metrics. */
  onResult: (result: Result) => void;
  logger: Logger;
}

/** The most events that are sent in one lease. */
const maxSent = 50;
/** The pause when something of ours does not answer. */
const postponeMs = 1_000;

/** Sends the events of the feed to the webhooks of each CRM, which take turns: a slow endpoint delays only itself. */
export function startWebhookDelivery({
  dependencies,
  connections,
  timings,
  onResult,
  logger,
}: WebhookDeliveryOptions): AsyncDisposable {
  const { database } = dependencies;
  const kind: DeliveryKind<LeasedWebhook, Result> = {
    name: 'webhook',
    table: webhookTable,
    attempt: (webhook, signal, stopping) => takeTurn(dependencies, timings, webhook, { signal, stopping }),
    record: (webhook, result) => recordResult(database, webhook, result),
    describe: ({ id, failedAttempts }) => ({ id, failedAttempts }),
    onResult,
  };
  return startDelivery({ kind, database, connections, timings, logger });
}

interface Signals {
  signal: AbortSignal;
  /** The process stops. */
  stopping: AbortSignal;
}

/** Sends the next events, one after the other, until there are none, one fails, or it is the turn of others. */
async function takeTurn(
  dependencies: WebhookDependencies,
  timings: WebhookTimings,
  webhook: LeasedWebhook,
  signals: Signals,
): Promise<Result> {
  const turnEndsMs = performance.now() + timings.turnMs;
  const progress = { position: webhook.position, delivered: 0 };
  try {
    while (progress.delivered < maxSent && performance.now() < turnEndsMs) {
      const { crmId, types, providerId, ignoreActors } = webhook;
      const filter = {
        crmId,
        after: progress.position,
        limit: maxSent - progress.delivered,
        types,
        providerId,
        ignoreActors,
      };
      const { listed, lastExamined } = await readEvents(dependencies.database, filter);
      if (lastExamined === undefined) break;
      const events = await describeEvents(dependencies, crmId, listed);
      // The webhook may have been changed or deleted while it waited for its turn, or for the references.
      if (!(await isHeld(dependencies.database, webhook))) return { outcome: 'lost', ...progress };
      for (const [index, { sequence }] of listed.entries()) {
        if (performance.now() >= turnEndsMs) return { outcome: 'sent', ...progress };
        const result = await sendEvent(
          dependencies,
          webhook,
          { event: events[index]!, sentAt: databaseTime(webhook) },
          signals.signal,
        );
        if (signals.stopping.aborted && !isDelivered(result))
          return { outcome: 'postpone', afterMs: 0, reason: 'stopped', ...progress };
        if (
          !(await recordAttempt(dependencies.database, webhook, { event: events[index]!, position: sequence, result }))
        )
          return { outcome: 'lost', ...progress };
        if (!isDelivered(result)) {
          const failedBefore = progress.delivered > 0 ? 0 : webhook.failedAttempts;
          return { ...decideAfterFailure(result, failedBefore, timings.retriesMs), ...progress };
        }
        progress.position = sequence;
        progress.delivered += 1;
      }
      progress.position = lastExamined.sequence;
    }
    return { outcome: 'sent', ...progress };
  } catch (error) {
    return {
      outcome: 'postpone',
      afterMs: postponeMs,
      reason: error instanceof DomainError ? error.code : describeError(error).message,
      ...progress,
    };
  }
}
