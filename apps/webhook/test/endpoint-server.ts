import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedCall {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  event: { id: string; type: string; data: { id: string; reference: string | null; version: number | null } };
}

/** What the endpoint does with a call. */
export type Answer = (response: ServerResponse, call: ReceivedCall) => void;

/** An endpoint of a CRM: a real HTTP server. */
export interface EndpointServer extends AsyncDisposable {
  url: string;
  calls: ReceivedCall[];
  /** Until it is changed, every call is answered with 204. */
  answer: Answer;
}

export function answerWith(status: number, headers: Record<string, string> = {}): Answer {
  return (response) => void response.writeHead(status, headers).end();
}

export async function startEndpoint(): Promise<EndpointServer> {
  const calls: ReceivedCall[] = [];
  const endpoint = { calls, answer: answerWith(204) };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const call = {
        path: request.url!,
        headers: request.headers,
        body,
        event: JSON.parse(body) as ReceivedCall['event'],
      };
      calls.push(call);
      endpoint.answer(response, call);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(endpoint, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
