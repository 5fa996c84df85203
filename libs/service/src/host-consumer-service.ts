import { ConsumerServiceService } from '@scheduling/contracts/operations/v1';
import { consumerName } from '@scheduling/events';
import type { Subscription } from '@scheduling/messaging';
import { type HostedService, hostOperatorService } from '@scheduling/rpc';

/** Reports to operators which durable consumers this service needs, from the table of its subscriptions. */
export function hostConsumerService<Schema>(options: {
  service: string;
  subscriptions: Subscription<Schema>[];
}): HostedService {
  const consumers = options.subscriptions.map(({ definition }) => ({
    name: consumerName(options.service, definition),
    subject: definition.subject,
  }));
  return hostOperatorService(ConsumerServiceService, { listConsumers: () => Promise.resolve({ consumers }) });
}
