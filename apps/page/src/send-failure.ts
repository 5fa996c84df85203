import { DomainError, type ErrorCode } from '@scheduling/errors';
import { MalformedRequest, TooManyStrangers } from '@scheduling/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ForeignForm } from './form-posts.ts';
import { pageLanguage } from './page-language.ts';
import { otherLanguageThan, type Page, renderPage, sendPage } from './render-page.ts';
import { textsOf } from './texts/texts-of.ts';
import type { Failure } from './texts/texts.ts';
import { TooManyVisits } from './visit-limit.ts';

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
  const otherLanguageHref = `?lang=${otherLanguageThan(language)}`;
  const shown = (bookAddress.test(request.url) && failuresOfBooking(request)[failure]) || failure;
  return renderPage('notice', { language, otherLanguageHref }, { ...textsOf[language].failures[shown] });
}

const bookAddress = /^\/book(?:[/?#]|$)/;

/** On booking pages: nothing is booked yet that could have been changed, and only one of them is opened from a mail. */
function failuresOfBooking({ url }: FastifyRequest): Partial<Record<Failure, Failure>> {
  return {
    deadLink: url.startsWith('/book/confirm/') ? 'deadConfirmation' : 'noBookingPage',
    foreignForm: 'foreignBooking',
    invalid: 'invalidBooking',
    tooMany: 'tooManyBookings',
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

function refusalOf(error: unknown, request: FastifyRequest): Refusal {
  if (error instanceof ForeignForm) return { failure: 'foreignForm', status: 403 };
  if (error instanceof TooManyVisits || error instanceof TooManyStrangers)
    return { failure: 'tooMany', status: 429, retryAfterSeconds: error.retryAfterSeconds };
  if (error instanceof DomainError) return refusalOfService(error);
  const status = error instanceof MalformedRequest ? 400 : statusOfFramework(error);
  if (status === undefined) return { failure: 'internal', status: 500 };
  // Without a form, only the address can be wrong.
  if (request.method === 'POST') return { failure: 'invalid', status };
  return isLinkAddress(request) ? deadLink : { failure: 'unknownAddress', status: 404 };
}

/** A service does not serve page's certificate: a human must act. */
const refusedCaller = 'caller.forbidden' satisfies ErrorCode;

/** The link to confirm what somebody else has booked in the meantime. */
const choiceUsed = 'booking_page.choice_used' satisfies ErrorCode;

function refusalOfService(error: DomainError): Refusal {
  switch (error.category) {
    case 'not_found':
    case 'gone':
      return deadLink;
    case 'unavailable':
      return { failure: 'unavailable', status: 503, retryAfterSeconds: 2 };
    case 'limited':
      return { failure: 'tooMany', status: 429, retryAfterSeconds: error.retryAfterSeconds ?? 1 };
    case 'forbidden':
      return error.code === refusedCaller ? { failure: 'internal', status: 500 } : deadLink;
    case 'conflict':
      return error.code === choiceUsed ? deadLink : { failure: 'internal', status: 500 };
    case 'invalid':
    case 'unauthenticated':
    case 'unprocessable':
      return { failure: 'internal', status: 500 };
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
