import { announcedBytes, noteArrival } from '@scheduling/http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isUtf8 } from 'node:buffer';
import { type Admission, weightOfBody } from './admission.ts';
import { RequestError } from './problem.ts';

/** JSON is the only kind of body. A request without a body may still declare a content type: some clients always do. */
export function addJsonParser(app: FastifyInstance, { admit }: Pick<Admission, 'admit'>): void {
  // Rejects a `__proto__` or `constructor.prototype` of its own: that is an attack, not data.
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0 && (request.method === 'DELETE' || request.routeOptions.schema?.body === undefined))
      return done(null);
    if (body.length === 0) return done(new RequestError('request.malformed', { detail: 'The body is empty.' }));
    const refusal = refusalOfEncoding(request, body);
    if (refusal !== undefined) return done(refusal);
    noteArrival(request);
    const parseBody = (): void => {
      const text = body.toString();
      void parse(request, text, (error, value) => {
        if (error) return done(new RequestError('request.malformed', { detail: reasonAgainst(text) }));
        return done(null, value);
      });
    };
    // To parse and check a large body blocks the process for milliseconds: CRMs take turns.
    admit(request, weightOfBody(body)).then(parseBody, done);
  });
}

/** Why the parser rejects a text. */
function reasonAgainst(text: string): string {
  try {
    JSON.parse(text);
    return 'The body has a property "__proto__", or "prototype" within "constructor".';
  } catch {
    return 'The body is not valid JSON.';
  }
}

/**
 * A body must be UTF-8. Anything else would be decoded with replacement characters, and different names would become
 * the same.
 */
export function refusalOfEncoding({ headers }: FastifyRequest, body: Buffer): RequestError | undefined {
  const charsets = [...headers['content-type']!.matchAll(/;\s*charset\s*=\s*"?([^\s";]+)/gi)].map(
    ([, charset]) => charset!,
  );
  // `utf8` is not registered, but in use.
  if (!charsets.every((charset) => /^utf-?8$/i.test(charset))) {
    return new RequestError('request.unsupported_media_type', {
      detail: 'The body must be UTF-8, but Content-Type names another charset.',
    });
  }
  return isUtf8(body) ? undefined : new RequestError('request.malformed', { detail: 'The body is not valid UTF-8.' });
}

/**
 * A compressed body is rejected before it is read (RFC 9110 15.5.16): as text it would be nonsense, and the process
 * would be busy with a mebibyte of it.
 */
export function refuseCompressedBodies(scope: FastifyInstance): void {
  scope.addHook('onRequest', async (request) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding === 'identity' || announcedBytes(request) === 0) return;
    throw new RequestError('request.unsupported_media_type', {
      detail: 'The body must not be compressed or otherwise encoded: Content-Encoding is not supported.',
      headers: { 'accept-encoding': 'identity' },
    });
  });
}
