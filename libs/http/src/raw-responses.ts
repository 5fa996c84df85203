import { newRequestId } from '@scheduling/runtime';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** What never becomes a Fastify request: Node's HTTP parser rejects it, or waits for it in vain. */
export type RawFailure = 'malformed' | 'headers_too_large' | 'timeout' | 'unsupported_version' | 'expectation_failed';

export interface RawResponse {
  status: number;
  contentType: string;
  /** Further ones. */
  headers?: Record<string, string>;
  body: string;
}

export type RespondToFailure = (failure: RawFailure, requestId: string) => RawResponse;

export function createClientErrorHandler(respond: RespondToFailure) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code !== 'ECONNRESET' && socket.writable) socket.write(rawResponse(failureOf(error.code), respond));
    socket.destroy();
  };
}

/** Node answers an unknown `Expect` without a body. */
export function refuseUnknownExpectations(server: Server, respond: RespondToFailure): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    response.socket?.end(rawResponse('expectation_failed', respond));
  });
}

function failureOf(code: string | undefined): RawFailure {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'headers_too_large';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'timeout';
    case 'HPE_INVALID_VERSION':
      return 'unsupported_version';
    default:
      return 'malformed';
  }
}

function rawResponse(failure: RawFailure, respond: RespondToFailure): string {
  const requestId = newRequestId();
  const { status, contentType, headers = {}, body } = respond(failure, requestId);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
