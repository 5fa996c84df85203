import type { FastifyInstance } from 'fastify';
import { RequestError } from './problem.ts';

/** JSON is the only kind of body. A request without a body may still declare a content type: some clients always do. */
export function addJsonParser(app: FastifyInstance): void {
  // A `__proto__` or `constructor.prototype` of its own is an attack, not data.
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '' && (request.method === 'DELETE' || request.routeOptions.schema?.body === undefined)) return done(null);
    if (body === '') return done(new RequestError('request.malformed', { detail: 'The body is empty.' }));
    void parse(request, body, (error, value) => {
      if (error) return done(new RequestError('request.malformed', { detail: 'The body is not valid JSON.' }));
      return done(null, value);
    });
  });
}
