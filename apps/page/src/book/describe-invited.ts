import { singleLine } from '@scheduling/presentation';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describeAdvice } from '../describe-advice.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import { fieldOf } from '../form-posts.ts';
import { typedMessage } from './typed-message.ts';
import type { PageVisit } from './page-visit.ts';

/** For whom is booked, as a line of the page; none if anybody can book. */
export function forWhom({ page: { invited }, texts }: PageVisit): string[] {
  const name = singleLine(invited?.name ?? '');
  return name === '' ? [] : [texts.book.invited.for(name)];
}

/** Where the mails to whoever is invited go. */
export function mailsTo({ page: { invited }, texts }: PageVisit): string[] {
  return invited?.maskedEmail ? [texts.book.invited.mails(singleLine(invited.maskedEmail))] : [];
}

/** Whether more can be booked: without an invitation always, and otherwise until all is booked that it is for. */
export function canBookMore({ page, kept }: PageVisit): boolean {
  return kept.for === undefined || (page.invited?.bookingsLeft ?? 0) > 0;
}

/** The link at the end of a notice, if it leads to something that can be booked. */
export function backToPage(visit: PageVisit): { href: string; text: string } | undefined {
  return canBookMore(visit) ? { href: visit.links.offers, text: visit.texts.book.done.again } : undefined;
}

/** Says that everything is booked that an invitation is for. */
export function sendUsed(request: FastifyRequest, reply: FastifyReply, visit: PageVisit): FastifyReply {
  return sendPage(reply, request.method === 'POST' ? 409 : 200, usedPage(visit, fieldOf(request, 'message')));
}

function usedPage(visit: PageVisit, message: string | undefined): Page {
  const { title, text, change } = visit.texts.book.invited.used;
  const { invited, selfService } = visit.page;
  const hasLinks = invited?.maskedEmail !== undefined && selfService;
  return renderPage('notice', visit.frame, {
    title,
    text: hasLinks ? `${text} ${change}` : text,
    advice: hasLinks ? undefined : describeAdvice(visit),
    message: typedMessage(visit, message),
  });
}

/** For an invitation by which too much was booked within a day. */
export function invitationLimitPage(visit: PageVisit, message: string | undefined): Page {
  const { limit, orAsk } = visit.texts.book.invited;
  return renderPage('notice', visit.frame, {
    ...limit,
    advice: describeAdvice(visit, orAsk),
    message: typedMessage(visit, message),
  });
}
