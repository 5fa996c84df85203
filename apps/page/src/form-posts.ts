import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Of a form, in bytes. */
export const formLimitBytes = 16_384;

/** A form that another site has sent. */
export class ForeignForm extends Error {
  override readonly name = 'ForeignForm';
}

const formType = 'application/x-www-form-urlencoded';

/** What is no form, although it was posted. */
class NoForm extends Error {
  override readonly name = 'NoForm';
  readonly statusCode = 415;
}

/** Admits only the forms of our own pages: nobody can let a person's browser change a booking unnoticed. */
export function acceptOwnForms(scope: FastifyInstance, pageUrl: string): void {
  const { origin } = new URL(pageUrl);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser<Buffer>(
    formType,
    { parseAs: 'buffer', bodyLimit: formLimitBytes },
    (_request, body, done) => done(null, new URLSearchParams(body.toString())),
  );
  scope.addHook('onRequest', async ({ method, headers }) => {
    if (method !== 'POST') return;
    const isForeign = headers.origin !== undefined && headers.origin !== origin;
    if (isForeign || headers['sec-fetch-site'] === 'cross-site') throw new ForeignForm('a form of another site');
    // Without a type, nothing would read a body.
    if (headers['content-type'] === undefined) throw new NoForm('a form has a type');
  });
}

/** The text of a field of a form; undefined if it has none. */
export function fieldOf({ body }: FastifyRequest, name: string): string | undefined {
  return (body instanceof URLSearchParams && body.get(name)) || undefined;
}
