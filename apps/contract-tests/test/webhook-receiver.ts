import type { ServerResponse } from 'node:http';
import { startWebhookReceiver, type WebhookEvent, type WebhookReceiver } from '@scheduling/embedded';

/** An endpoint of a CRM: a real HTTP server, which verifies every signature. */
export interface TestReceiver extends WebhookReceiver {
  /** Every call, with a signature that verifies. */
  events: WebhookEvent[];
  /** Calls whose signature does not verify. */
  forgeries: number;
  /** Until it is changed, every call is answered with 204. */
  answer: (response: ServerResponse) => void;
}

export async function startReceiver(): Promise<TestReceiver> {
  const seen = {
    events: [] as WebhookEvent[],
    forgeries: 0,
    answer: (response: ServerResponse): void => void response.writeHead(204).end(),
  };
  const receiver = await startWebhookReceiver((event, response) => {
    if (event === undefined) test.forgeries += 1;
    else test.events.push(event);
    test.answer(response);
  });
  const test: TestReceiver = Object.assign(receiver, seen);
  return test;
}
