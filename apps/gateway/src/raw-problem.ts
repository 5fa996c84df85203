import { newRequestId } from '@scheduling/runtime';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { RequestError, toProblem, toRefusal } from './problem.ts';

/** Answers with a problem what never becomes a request of Fastify: what Node's HTTP parser refuses or gives up waiting for. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable) socket.write(rawResponse(parserRefusal(error.code)));
  socket.destroy();
}

/** Node answers an `Expect` that it does not know without a body. */
export function refuseUnknownExpectations(server: Server): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    response.socket?.end(rawResponse(new RequestError(417, 'request.expectation_failed', 'The only supported expectation is 100-continue.')));
  });
}

function parserRefusal(code: string | undefined): RequestError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new RequestError(431, 'request.headers_too_large', 'The headers of the request are too large.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new RequestError(408, 'request.timeout', 'The request did not arrive in time.');
    case 'HPE_INVALID_VERSION':
      return new RequestError(505, 'request.unsupported_version', 'The service supports HTTP/1.1.');
    default:
      return new RequestError(400, 'request.malformed', 'The request is not a valid HTTP request.');
  }
}

function rawResponse(error: RequestError): string {
  const requestId = newRequestId();
  const body = JSON.stringify(toProblem(toRefusal(error), requestId));
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
