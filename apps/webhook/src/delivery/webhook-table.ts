import type { LeasedRow, LeasedTable } from '@scheduling/delivery';
import { sql } from 'kysely';
import type { WebhookRow } from '../webhook/webhook.ts';

export type LeasedWebhook = WebhookRow & LeasedRow;

/**
 * What is leased is a webhook with its position, not an event: so its events are sent one at a time, in their order.
 */
export const webhookTable: LeasedTable = {
  name: 'webhook',
  expires: false,
  lane: sql<string>`item.id::text`,
  host: sql<string>`split_part(item.url, '/', 3)`,
};
