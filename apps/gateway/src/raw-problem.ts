import { newRequestId } from '@scheduling/runtime';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { RequestError, toProblem, toRefusal } from './problem.ts';

/** Sends a problem for whatever never becomes a Fastify request: what Node's HTTP parser rejects or times out on. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable) socket.write(rawResponse(parserRefusal(error.code)));
  socket.destroy();
}

/** Node answers an unknown `Expect` without a body. */
export function refuseUnknownExpectations(server: Server): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    response.socket?.end(rawResponse(new RequestError('request.expectation_failed')));
  });
}

function parserRefusal(code: string | undefined): RequestError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new RequestError('request.headers_too_large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new RequestError('request.timeout');
    case 'HPE_INVALID_VERSION':
      return new RequestError('request.unsupported_version');
    default:
      return new RequestError('request.malformed', { detail: 'The request is not a valid HTTP request.' });
  }
}

function rawResponse(error: RequestError): string {
  const requestId = newRequestId();
  const refusal = toRefusal(error);
  const body = JSON.stringify(toProblem(refusal, requestId));
  return [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
