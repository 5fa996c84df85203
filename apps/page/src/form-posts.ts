import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Of a form, in bytes. */
export const formLimitBytes = 16_384;

/** A form that another site has sent. */
export class ForeignForm extends Error {
  override readonly name = 'ForeignForm';
}

/** Admits only the forms of our own pages: nobody can let a person's browser change a booking unnoticed. */
export function acceptOwnForms(scope: FastifyInstance, pageUrl: string): void {
  const { origin } = new URL(pageUrl);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser<Buffer>(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer', bodyLimit: formLimitBytes },
    (_request, body, done) => done(null, new URLSearchParams(body.toString())),
  );
  scope.addHook('onRequest', async ({ method, headers }) => {
    if (method !== 'POST') return;
    const isForeign = headers.origin !== undefined && headers.origin !== origin;
    if (isForeign || headers['sec-fetch-site'] === 'cross-site') throw new ForeignForm('a form of another site');
  });
}

/** The text of a field of a form; undefined if it has none. */
export function fieldOf({ body }: FastifyRequest, name: string): string | undefined {
  return (body instanceof URLSearchParams && body.get(name)) || undefined;
}
