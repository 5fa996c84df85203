import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

/** A response that is the same for everybody. */
export interface RenderedFile {
  headers: Record<string, string>;
  /** Absent for a file that is always sent compressed. */
  bytes?: Buffer;
  gzip: Buffer;
}

export function renderedFile(contentType: string, text: string, headers: Record<string, string> = {}): RenderedFile {
  const bytes = Buffer.from(text);
  return {
    headers: { 'content-type': contentType, etag: etagOf(bytes), ...headers },
    bytes,
    gzip: gzipSync(bytes, { level: 9 }),
  };
}

/** Makes something when it is first asked for, and again after a failure. */
export function makeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

export function etagOf(bytes: Uint8Array): string {
  // Weak, because it is that of both encodings.
  return `W/"${createHash('sha256').update(bytes).digest('base64url')}"`;
}

/** Sends a file, or 304 if the client already has it. */
export function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { headers, bytes, gzip }: RenderedFile,
): FastifyReply {
  void reply.headers({ ...headers, 'cache-control': 'no-cache', vary: 'accept-encoding' });
  if (request.headers['if-none-match'] === headers['etag']) return reply.code(304).send();
  if (bytes !== undefined && !acceptsGzip(request)) return reply.send(bytes);
  return reply.header('content-encoding', 'gzip').send(gzip);
}

function acceptsGzip({ headers }: FastifyRequest): boolean {
  const accepted = (headers['accept-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim());
  return accepted.some((coding) => /^gzip(?!.*;\s*q=0(?:\.0+)?$)/.test(coding));
}
