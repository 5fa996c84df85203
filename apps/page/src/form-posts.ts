import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Of a form, in bytes. */
export const formLimitBytes = 16_384;

/** A form that another site has sent. */
export class ForeignForm extends Error {
  override readonly name = 'ForeignForm';
}

const formType = 'application/x-www-form-urlencoded';

/** What is no form, although it was posted, or none that can be read. */
class NoForm extends Error {
  override readonly name = 'NoForm';
  readonly statusCode: 400 | 415;

  constructor(statusCode: 400 | 415, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** Admits only the forms of our own pages: nobody can let a person's browser change a booking unnoticed. */
export function acceptOwnForms(scope: FastifyInstance, pageUrl: string): void {
  const { origin } = new URL(pageUrl);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser<Buffer>(
    formType,
    { parseAs: 'buffer', bodyLimit: formLimitBytes },
    (_request, body, done) => {
      try {
        done(null, readForm(body));
      } catch (error) {
        done(error as Error);
      }
    },
  );
  scope.addHook('onRequest', async ({ method, headers }) => {
    if (method !== 'POST') return;
    const isForeign = headers.origin !== undefined && headers.origin !== origin;
    if (isForeign || headers['sec-fetch-site'] === 'cross-site') throw new ForeignForm('a form of another site');
    // Without a type, nothing would read a body.
    const type = headers['content-type'];
    const charset = type === undefined ? undefined : /;\s*charset="?([^\s;"]*)/i.exec(type)?.[1];
    if (type === undefined || (charset !== undefined && !/^utf-8$/i.test(charset)))
      throw new NoForm(415, 'a form is application/x-www-form-urlencoded, in UTF-8');
    if (headers['content-encoding'] !== undefined) throw new NoForm(415, 'a form is not compressed');
  });
}

/** What is not UTF-8 would otherwise be stored as replacement characters. */
function readForm(body: Buffer): URLSearchParams {
  const text = body.toString('latin1');
  try {
    decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new NoForm(400, 'a form is percent-encoded in UTF-8');
  }
  if (!/^[\x20-\x7e]*$/.test(text)) throw new NoForm(400, 'a form is percent-encoded');
  return new URLSearchParams(text);
}

/** The fields of a form. */
export function formOf({ body }: FastifyRequest): URLSearchParams {
  return body instanceof URLSearchParams ? body : new URLSearchParams();
}

/** The text of a field of a form; undefined if it has none. */
export function fieldOf(request: FastifyRequest, name: string): string | undefined {
  return formOf(request).get(name) || undefined;
}

/** The start that the question of a form shows; undefined if the form has none that can be read. */
export function shownStartOf(request: FastifyRequest): Date | undefined {
  const start = new Date(fieldOf(request, 'start') ?? '');
  return Number.isNaN(start.getTime()) ? undefined : start;
}
