import type { FastifyInstance, FastifyReply, FastifyRequest, LightMyRequestResponse } from 'fastify';
import { createHash } from 'node:crypto';

/** A response that is the same for everybody. */
export interface RenderedFile {
  status: number;
  headers: Record<string, string>;
  bytes: Buffer;
}

/** The headers of a rendered page that clients get; the others belong to the connection. */
const keptHeaders = ['content-type', 'content-security-policy', 'location'];

/** Requests each address once, so that clients can be sent the responses as bytes. */
export async function renderFiles(renderer: FastifyInstance, paths: Iterable<string>): Promise<Map<string, RenderedFile>> {
  const files = new Map<string, RenderedFile>();
  for (const path of paths) files.set(path, toRenderedFile(await renderer.inject(path)));
  return files;
}

/** Sends a file, or 304 if the client already has it. */
export function sendFile(request: FastifyRequest, reply: FastifyReply, { status, headers, bytes }: RenderedFile): FastifyReply {
  void reply.headers({ ...headers, 'cache-control': 'no-cache' });
  if (request.headers['if-none-match'] === headers['etag']) return reply.code(304).send();
  return reply.code(status).send(bytes);
}

function toRenderedFile({ statusCode, headers, rawPayload }: LightMyRequestResponse): RenderedFile {
  const kept = keptHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])] as const]));
  const etag = `"${createHash('sha256').update(rawPayload).digest('base64url')}"`;
  return { status: statusCode, headers: { ...Object.fromEntries(kept), etag }, bytes: rawPayload };
}
