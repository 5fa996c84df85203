import type { PageOffer } from '@scheduling/contracts/calendar/v1';
import { formatDuration, formatPrice, singleLine } from '@scheduling/presentation';
import { describeAdvice } from '../describe-advice.ts';
import { type Page, renderPage } from '../render-page.ts';
import { forWhom } from './describe-invited.ts';
import { typedMessage } from './typed-message.ts';
import type { PageVisit } from './page-visit.ts';

/**
 * What can be booked, each as a link to its week.
 *
 * @param isGone whether the address names an offer that there is no more
 * @param message that was typed in its form
 */
export function offersPage(visit: PageVisit, isGone: boolean, message: string | undefined): Page {
  const { page, texts, links } = visit;
  const { title, none, gone } = texts.book.offers;
  const typed = typedMessage(visit, message);
  if (page.offers.length === 0)
    return renderPage('notice', visit.frame, { ...none, advice: describeAdvice(visit), message: typed });
  return renderPage('page-offers', visit.frame, {
    title,
    note: isGone ? gone : undefined,
    message: typed,
    forWhom: forWhom(visit),
    offers: page.offers.map((offer) => ({
      href: links.week({ offer: offer.key, with: undefined }),
      name: singleLine(offer.name),
      terms: termsOf(visit, offer),
    })),
  });
}

/** Its duration and price. */
export function termsOf({ locale }: PageVisit, { duration, price }: PageOffer): string {
  return [formatDuration(duration, locale), price && price.value > 0 && formatPrice(price, locale)]
    .filter(Boolean)
    .join(' · ');
}
