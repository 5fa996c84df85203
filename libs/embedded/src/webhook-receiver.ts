import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Event, verifyWebhook } from '@scheduling/client';

/** An event as a CRM receives it (interface 6.1). */
export type WebhookEvent = Event;

/** An endpoint of a CRM. */
export interface WebhookReceiver extends AsyncDisposable {
  url: string;
  /** That of the webhook; set it before the first event. */
  secret: string;
}

/** What becomes of a call: undefined instead of the event if its signature is not valid. */
export type OnCall = (event: WebhookEvent | undefined, response: ServerResponse) => void;

/**
 * Listens on this machine and verifies the signature of every call, as the client of CRMs does.
 *
 * @param host the name or address of this machine for the sender. By default only processes of this machine reach it
 */
export async function startWebhookReceiver(onCall: OnCall, host = '127.0.0.1'): Promise<WebhookReceiver> {
  const receiver = { secret: '' };
  const verify = (body: string, headers: IncomingHttpHeaders): WebhookEvent | undefined => {
    try {
      return verifyWebhook(receiver.secret, body, headers);
    } catch {
      return undefined;
    }
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => onCall(verify(Buffer.concat(chunks).toString(), request.headers), response));
  }).listen(0, host === '127.0.0.1' ? host : '0.0.0.0');
  await once(server, 'listening');
  return Object.assign(receiver, {
    url: `http://${host}:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
