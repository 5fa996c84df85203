import type { BookingPage, GetPageBookingResponse, OwnBooking } from '@scheduling/contracts/calendar/v1';
import { singleLine } from '@scheduling/presentation';
import { bookingLinks } from '../booking-links.ts';
import { describeBooking, situationOf } from '../describe-booking.ts';
import { type Page, renderPage } from '../render-page.ts';
import type { Visit } from '../visit.ts';
import { backToPage, canBookMore } from './describe-invited.ts';
import type { PageVisit } from './page-visit.ts';
import { describePagePeriod } from './second-zone.ts';

/**
 * What has been booked, as it is now.
 *
 * @param token of the link by which the person changes it
 * @param basePath under which page is reached
 */
export function donePage(
  visit: PageVisit,
  booking: OwnBooking,
  { token, resourceReference }: Pick<GetPageBookingResponse, 'token' | 'resourceReference'>,
  basePath: string,
): Page {
  const { texts, frame, page, kept } = visit;
  const links = bookingLinks(basePath, token ?? '', kept.lang);
  // Without a link, what can be changed is nothing that this page could offer.
  const changeable = token === undefined ? { cancellable: false, movable: false } : {};
  const own: Visit = { ...visit, booking: { ...booking, ...changeable }, links };
  const { title, text, ...content } = describeBooking(own, undefined);
  const situation = situationOf(booking);
  const said = situation === 'booked' || situation === 'requested' ? texts.book.done[situation] : undefined;
  const { maskedEmail } = booking;
  const ownActions = [
    { href: links.booking(), text: texts.book.done.change, isMain: true, opensTab: true },
    ...(situation === 'booked' ? [{ href: links.calendar, text: texts.book.done.calendar, opensTab: true }] : []),
  ];
  const isInvitedAgain = kept.for !== undefined && canBookMore(visit);
  const another = isInvitedAgain ? [{ href: visit.links.offers, text: texts.book.done.another }] : [];
  return renderPage('booking', frame, {
    ...content,
    title: said?.title ?? title,
    text: said
      ? [said.text, maskedEmail && texts.book.done.mail(singleLine(maskedEmail))].filter(Boolean).join(' ')
      : text,
    period: describePagePeriod(visit, booking),
    resource: findResourceName(page, resourceReference),
    tooLate: undefined,
    actions: [...(token === undefined ? [] : ownActions), ...another],
  });
}

/** As one of the offers calls it. */
function findResourceName({ offers }: BookingPage, reference: string | undefined): string | undefined {
  const resource = offers.flatMap(({ resources }) => resources).find((each) => each.resourceReference === reference);
  return resource && singleLine(resource.name);
}

/** What is not booked before the person has opened a mail. */
export function pendingPage(visit: PageVisit, email: string): Page {
  const { title, text } = visit.texts.book.pending;
  return renderPage('notice', visit.frame, { title: title(singleLine(email)), text, back: backToPage(visit) });
}

/** For a receipt that works no longer. */
export function overPage(visit: PageVisit): Page {
  const { texts, frame, kept } = visit;
  const { title, text } = texts.book.done.over;
  return renderPage('notice', frame, {
    title,
    // Whoever is invited may have no address to which a mail goes.
    text: kept.for === undefined ? text : texts.book.invited.over,
    back: backToPage(visit),
  });
}
