import { ConsumerServiceService } from '@scheduling/contracts/operations/v1';
import { consumedEvents, consumerName, consumingServices } from '@scheduling/events';
import { createClient } from '@scheduling/rpc';
import { expect, inject, it } from 'vitest';

it.each(consumingServices)('%s consumes exactly the events that its NATS user may', async (service) => {
  using client = createClient(ConsumerServiceService, service, inject('stack').admin[service]);
  const { consumers } = await client.listConsumers({});
  const permitted = consumedEvents(service).map((definition) => ({
    name: consumerName(service, definition),
    subject: definition.subject,
  }));
  expect(consumers).toEqual(permitted);
});
