import { DomainError, type ErrorCode } from '@scheduling/errors';
import { MalformedRequest, TooManyStrangers } from '@scheduling/http';
import type { SpokenLanguage } from '@scheduling/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ForeignForm } from './form-posts.ts';
import { pageLanguage } from './page-language.ts';
import { queryOf } from './query-of.ts';
import { otherLanguageThan, type Page, renderPage, sendPage } from './render-page.ts';
import { textsOf } from './texts/texts-of.ts';
import type { Failure } from './texts/texts.ts';
import { TooManyVisits } from './visit-limit.ts';

/** Responds to an error. */
export type SendFailure = (
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
) => FastifyReply | Promise<FastifyReply>;

/** Sends a page that says nothing of any booking. What needs a human's attention is logged. */
export function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { failure, status, retryAfterSeconds } = refusalOf(error, request);
  if (status === 500) request.log.error({ err: error }, 'unexpected error');
  if (status === 503) request.log.warn({ err: error }, 'unavailable');
  if (retryAfterSeconds !== undefined) void reply.header('retry-after', String(retryAfterSeconds));
  return sendPage(reply, status, failurePage(failure, request));
}

/** It depends on nothing but the language: pages of links that do not work cannot be told apart. */
export function failurePage(failure: Failure, request: FastifyRequest): Page {
  const { language } = pageLanguage(request);
  const shown = (bookAddress.test(request.url) && failuresOfBooking(request)[failure]) || failure;
  return renderPage(
    'notice',
    { language, otherLanguageHref: hrefIn(otherLanguageThan(language), request) },
    { ...textsOf[language].failures[shown] },
  );
}

/** The same address in a language. Of the query, it keeps only for whom is booked. */
function hrefIn(lang: SpokenLanguage, request: FastifyRequest): string {
  const invitation = queryOf(request).get('for');
  return `?${new URLSearchParams({ lang, ...(invitation !== null && { for: invitation }) }).toString()}`;
}

const bookAddress = /^\/book(?:[/?#]|$)/;
/** Of a form with what a person has typed. */
const formAddress = /^\/book\/[^/?]+\/form\//;

/** On booking pages: nothing is booked yet that could have been changed, and only one of them is opened from a mail. */
function failuresOfBooking({ url, method }: FastifyRequest): Partial<Record<Failure, Failure>> {
  return {
    deadLink: url.startsWith('/book/confirm/') ? 'deadConfirmation' : 'noBookingPage',
    foreignForm: 'foreignBooking',
    invalid: 'invalidBooking',
    tooMany: 'tooManyBookings',
    ...(method === 'POST' && formAddress.test(url) && { unavailable: 'unavailableForm' }),
  };
}

/** Whether it is about a link that leads nowhere, whatever the reason. */
export function isDeadLink(error: unknown, request: FastifyRequest): boolean {
  return refusalOf(error, request).failure === 'deadLink';
}

interface Refusal {
  failure: Failure;
  status: number;
  retryAfterSeconds?: number;
}

const deadLink: Refusal = { failure: 'deadLink', status: 404 };
const internal: Refusal = { failure: 'internal', status: 500 };

function refusalOf(error: unknown, request: FastifyRequest): Refusal {
  if (error instanceof ForeignForm) return { failure: 'foreignForm', status: 403 };
  if (error instanceof TooManyVisits || error instanceof TooManyStrangers)
    return { failure: 'tooMany', status: 429, retryAfterSeconds: error.retryAfterSeconds };
  if (error instanceof DomainError) return refusalOfService(error);
  const status = error instanceof MalformedRequest ? 400 : statusOfFramework(error);
  if (status === undefined) return internal;
  // Without a form, only the address can be wrong.
  if (request.method === 'POST') return { failure: 'invalid', status };
  return isLinkAddress(request) ? deadLink : { failure: 'unknownAddress', status: 404 };
}

/** Of codes that are answered in another way than the rest of their category. */
const refusalsByCode = new Map<string, Refusal>([
  // A service does not serve page's certificate: a human must act.
  ['caller.forbidden', internal],
  // The link to confirm what somebody else has booked in the meantime.
  ['booking_page.choice_used', deadLink],
  ['booking_page.invited_only', { failure: 'invitedOnly', status: 403 }],
] satisfies [ErrorCode, Refusal][]);

function refusalOfService(error: DomainError): Refusal {
  const refusal = refusalsByCode.get(error.code);
  if (refusal !== undefined) return refusal;
  switch (error.category) {
    case 'not_found':
    case 'gone':
    case 'forbidden':
      return deadLink;
    case 'unavailable':
      return { failure: 'unavailable', status: 503, retryAfterSeconds: 2 };
    case 'limited':
      return { failure: 'tooMany', status: 429, retryAfterSeconds: error.retryAfterSeconds ?? 1 };
    case 'conflict':
    case 'invalid':
    case 'unauthenticated':
    case 'unprocessable':
      return internal;
    default:
      return error.category satisfies never;
  }
}

/** Fastify marks the errors of clients with a status. */
function statusOfFramework(error: unknown): number | undefined {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  return status >= 400 && status < 500 ? status : undefined;
}

function isLinkAddress({ url }: FastifyRequest): boolean {
  return /^\/(?:book|booking|calendar|decide)(?:[/?#]|$)/.test(url);
}
