import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** An event as a CRM receives it (interface 6.1). */
export interface WebhookEvent {
  id: string;
  type: string;
  timestamp: string;
  actor: string;
  providerReference: string | null;
  data: {
    id: string;
    reference: string | null;
    appointmentReference: string | null;
    customerReference: string | null;
    state: string | null;
    previousState: string | null;
    version: number | null;
    start: string | null;
    expiresAt: string | null;
  };
}

/** An endpoint of a CRM. */
export interface WebhookReceiver extends AsyncDisposable {
  url: string;
  /** That of the webhook; set it before the first event. */
  secret: string;
}

/** What becomes of a call: undefined instead of the event if its signature is not valid. */
export type OnCall = (event: WebhookEvent | undefined, response: ServerResponse) => void;

/**
 * Listens on this machine and verifies the signature of every call, with the library of Standard Webhooks.
 *
 * @param host the name or address of this machine for the sender. By default only processes of this machine reach it
 */
export async function startWebhookReceiver(onCall: OnCall, host = '127.0.0.1'): Promise<WebhookReceiver> {
  const receiver = { secret: '' };
  const verify = (body: string, headers: object): WebhookEvent | undefined => {
    try {
      return new Webhook(receiver.secret).verify(body, headers as Record<string, string>) as WebhookEvent;
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
