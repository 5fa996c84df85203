import { VerificationState } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { toRefusal } from '../problem.ts';
import { confirmPage, contentSecurityPolicy, type Language, outcomePage, type VerificationOutcome } from './email-verification-page.ts';
import { spokenLanguage } from './users.ts';

/** Only a form with a token is ever posted here. */
const formLimitBytes = 4_096;
const maxTokenLength = 512;

/**
 * The page behind the link in a verification mail. Opening it changes nothing, because mail scanners open links: only the button, which
 * posts a form, confirms the address. People come here, so failures are pages too.
 */
export function emailVerificationRoutes({ identity }: Clients) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addContentTypeParser<string>('application/x-www-form-urlencoded', { parseAs: 'string', bodyLimit: formLimitBytes }, (_request, body, done) => {
      done(null, { token: new URLSearchParams(body).get('token') });
    });
    app.setErrorHandler(sendFailure);

    app.get('/verify-email', { schema: { hide: true } }, async (request, reply) => {
      const token = tokenOf(request.query);
      const { email, language: known, state } = await identity.getVerification({ token });
      const language = pageLanguage(known, request);
      if (state === VerificationState.USED) return sendPage(reply, 410, outcomePage('used', language));
      if (state === VerificationState.EXPIRED) return sendPage(reply, 410, outcomePage('expired', language));
      return sendPage(reply, 200, confirmPage({ token, email, language }));
    });

    app.post('/verify-email', { schema: { hide: true } }, async (request, reply) => {
      const { language } = await identity.confirmVerification({ token: tokenOf(request.body) });
      return sendPage(reply, 200, outcomePage('confirmed', pageLanguage(language, request)));
    });
  };
}

function tokenOf(from: unknown): string {
  const token = (from as { token?: unknown } | null | undefined)?.token;
  if (typeof token === 'string' && token !== '' && token.length <= maxTokenLength) return token;
  throw DomainError.notFound('verification.not_found', 'This verification link does not exist.');
}

function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, code, headers } = toRefusal(error);
  const outcome = outcomes[code] ?? (status >= 500 ? 'unavailable' : 'unknown');
  if (status >= 500) request.log.warn({ err: error }, 'the verification page could not be shown');
  // Gone tells that it was right once.
  const pageStatus = outcome === 'used' || outcome === 'expired' ? 410 : status;
  return sendPage(reply.headers(headers), pageStatus, outcomePage(outcome, pageLanguage(undefined, request)));
}

const outcomes: Record<string, VerificationOutcome> = {
  'verification.not_found': 'unknown',
  'verification.used': 'used',
  'verification.expired': 'expired',
};

function sendPage(reply: FastifyReply, status: number, html: string): FastifyReply {
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .headers({ 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
    .send(html);
}

/** The person's language when it is known, else the first of the browser's that the service speaks. */
function pageLanguage(known: string | undefined, request: FastifyRequest): Language {
  const accepted = (request.headers['accept-language'] ?? '').split(',').map((each) => each.split(';', 1)[0]!.trim());
  return [known, ...accepted].map(spokenLanguage).find((language) => language !== undefined) ?? 'en';
}
