import type { FastifyInstance } from 'fastify';
import { RequestError } from './problem.ts';

/** JSON is the only kind of body. A DELETE may announce one and have none: some clients always do. */
export function addJsonParser(app: FastifyInstance): void {
  // An own `__proto__` or `constructor.prototype` is an attack, not data.
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '' && request.method === 'DELETE') return done(null);
    if (body === '') return done(new RequestError(400, 'request.malformed', 'The body is empty.'));
    void parse(request, body, (error, value) => {
      if (error) return done(new RequestError(400, 'request.malformed', 'The body is not valid JSON.'));
      return done(null, value);
    });
  });
}
