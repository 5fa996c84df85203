import { VerificationState } from '@scheduling/contracts/identity/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { slowDown, type Strangers } from '@scheduling/http';
import { type SpokenLanguage, spokenLanguage } from '@scheduling/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { sendPage } from '../html-page.ts';
import { refusalOfEncoding } from '../json-body.ts';
import { toRefusal } from '../problem.ts';
import {
  closedPage,
  confirmPage,
  failurePage,
  type LinkOutcome,
  type VerificationFacts,
} from './email-verification-page.ts';

/** Only a form with a token is ever posted here. */
const formLimitBytes = 4_096;
const maxTokenLength = 512;

/**
 * The page that a verification mail links to. Opening it changes nothing, because mail scanners open links: only the
 * button, which posts a form, confirms the address. People open it in a browser, so failures are pages, too.
 */
export function emailVerificationRoutes({ identity }: Clients, strangers: Strangers) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addContentTypeParser<Buffer>(
      'application/x-www-form-urlencoded',
      { parseAs: 'buffer', bodyLimit: formLimitBytes },
      (request, body, done) => {
        done(refusalOfEncoding(request, body) ?? null, { token: new URLSearchParams(body.toString()).get('token') });
      },
    );
    app.addHook('onRequest', (request) => slowDown(strangers, request));
    app.setErrorHandler((error, request, reply) => {
      if (error instanceof DomainError && error.category === 'not_found') strangers.noteFailure(request.ip);
      return sendFailure(error, request, reply);
    });

    app.get('/verify-email', { schema: { hide: true } }, async (request, reply) => {
      const token = tokenOf(request.query);
      const verification = await identity.getVerification({ token });
      const language = pageLanguage(verification.language, request);
      const outcome = outcomeOf(verification.state);
      if (outcome !== undefined) return sendPage(reply, 410, closedPage(outcome, verification, language));
      return sendPage(reply, 200, confirmPage(verification, { token, language }));
    });

    app.post('/verify-email', { schema: { hide: true } }, async (request, reply) => {
      const token = tokenOf(request.body);
      const { outcome, verification } = await confirm(identity, token);
      const page = closedPage(outcome, verification, pageLanguage(verification.language, request));
      return sendPage(reply, outcome === 'confirmed' ? 200 : 410, page);
    });
  };
}

async function confirm(
  identity: Clients['identity'],
  token: string,
): Promise<{ outcome: LinkOutcome; verification: VerificationFacts & { language: string } }> {
  try {
    return { outcome: 'confirmed', verification: await identity.confirmVerification({ token }) };
  } catch (error) {
    const outcome = error instanceof DomainError ? outcomeOfRefusal[error.code] : undefined;
    if (outcome === undefined) throw error;
    return { outcome, verification: await identity.getVerification({ token }) };
  }
}

const outcomeOfRefusal: Record<string, LinkOutcome> = {
  'verification.used': 'used',
  'verification.expired': 'expired',
} satisfies Partial<Record<ErrorCode, LinkOutcome>>;

/** The state of a link that can no longer be used. */
function outcomeOf(state: VerificationState): LinkOutcome | undefined {
  switch (state) {
    case VerificationState.USED:
      return 'used';
    case VerificationState.EXPIRED:
      return 'expired';
    case VerificationState.OPEN:
    case VerificationState.UNSPECIFIED:
    case VerificationState.UNRECOGNIZED:
      return undefined;
    default:
      return state satisfies never;
  }
}

function tokenOf(from: unknown): string {
  const token = (from as { token?: unknown } | null | undefined)?.token;
  if (typeof token === 'string' && token !== '' && token.length <= maxTokenLength) return token;
  throw new DomainError('verification.not_found');
}

function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers } = toRefusal(error);
  if (status >= 500) request.log.warn({ err: error }, 'the verification page could not be shown');
  const page = failurePage(status >= 500 ? 'unavailable' : 'unknown', pageLanguage(undefined, request));
  return sendPage(reply.headers(headers), status, page);
}

/** The person's language if it is known, else the first of the browser's languages that the service supports. */
function pageLanguage(known: string | undefined, request: FastifyRequest): SpokenLanguage {
  const accepted = (request.headers['accept-language'] ?? '').split(',').map((each) => each.split(';', 1)[0]!.trim());
  return [known, ...accepted].map(spokenLanguage).find((language) => language !== undefined) ?? 'en';
}
