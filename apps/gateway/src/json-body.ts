import type { FastifyInstance } from 'fastify';
import { type Admission, weightOfBody } from './admission.ts';
import { RequestError } from './problem.ts';
import { announcedBytes, noteArrival } from './request-hooks.ts';

/** JSON is the only kind of body. A request without a body may still declare a content type: some clients always do. */
export function addJsonParser(app: FastifyInstance, { admit }: Pick<Admission, 'admit'>): void {
  // A `__proto__` or `constructor.prototype` of its own is an attack, not data.
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '' && (request.method === 'DELETE' || request.routeOptions.schema?.body === undefined)) return done(null);
    if (body === '') return done(new RequestError('request.malformed', { detail: 'The body is empty.' }));
    noteArrival(request);
    const parseBody = (): void => {
      void parse(request, body, (error, value) => {
        if (error) return done(new RequestError('request.malformed', { detail: 'The body is not valid JSON.' }));
        return done(null, value);
      });
    };
    // To parse and check a large body blocks the process for milliseconds: CRMs take turns.
    admit(request, weightOfBody(body)).then(parseBody, done);
  });
}

/** A compressed body is rejected before it is read (RFC 9110 15.5.16): as text it would be nonsense, and the process would be busy with a mebibyte of it. */
export function refuseCompressedBodies(scope: FastifyInstance): void {
  scope.addHook('onRequest', async (request) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding === 'identity' || announcedBytes(request) === 0) return;
    throw new RequestError('request.unsupported_media_type', {
      detail: 'The body must not be compressed, or encoded in another way: Content-Encoding is not supported.',
      headers: { 'accept-encoding': 'identity' },
    });
  });
}
