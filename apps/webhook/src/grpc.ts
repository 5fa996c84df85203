import { EventServiceService } from '@scheduling/contracts/webhook/v1';
import { type HostedService, hostService } from '@scheduling/rpc';
import { callers } from './callers.ts';
import type { WebhookDependencies } from './dependencies.ts';
import { listEvents } from './feed/list-events.ts';

/** Maps protobuf messages to the use cases and back. */
export function hostEventService(dependencies: WebhookDependencies): HostedService {
  return hostService(EventServiceService, callers.EventService, {
    listEvents: async (request) => {
      const { events, nextAfter } = await listEvents(dependencies, request);
      return { json: Buffer.from(events.map((event) => JSON.stringify(event)).join(',')), nextAfter };
    },
  });
}
