import { Confirmation, type GetPendingBookingResponse, type PageTime } from '@scheduling/contracts/calendar/v1';
import { singleLine } from '@scheduling/presentation';
import { describeAdvice } from '../describe-advice.ts';
import { type Page, renderPage } from '../render-page.ts';
import { bookNearest, factsOf, shownPriceOf, troubleOf } from './describe-form.ts';
import { placeValue } from './page-request.ts';
import { findOffer, type PageVisit } from './page-visit.ts';

/** A booking that its person is to confirm. */
export interface ConfirmForm {
  pending: GetPendingBookingResponse;
  /** If its place was taken: the nearest times. */
  nearest: PageTime[];
  /** What has kept it from being booked. */
  error: 'taken' | 'changed' | undefined;
}

/** Asks before it is booked: mail scanners open links. */
export function confirmPage(visit: PageVisit, { pending, nearest, error }: ConfirmForm): Page {
  const { page, texts } = visit;
  const { place, resourceReference, start } = pending;
  const offer = findOffer(page, pending.offer)!;
  const isRequest = page.confirmation === Confirmation.REQUESTED;
  const { title, text, button } = texts.book.confirm[isRequest ? 'request' : 'booking'];
  const trouble = troubleOf(visit, error, place, nearest.length > 0 ? texts.book.taken.text : undefined);
  const facts = place && factsOf(visit, { offer, at: resourceReference }, place);
  // It is opened from a mail.
  return renderPage(
    'page-confirm',
    { ...visit.frame, embedOn: [] },
    {
      title: trouble ? `${texts.error}: ${title}` : title,
      heading: title,
      error: trouble,
      text,
      facts: facts && { ...facts, details: [...facts.details, ...detailsOf(visit, pending)] },
      what: singleLine(offer.name),
      price: shownPriceOf(place ? place.price : offer.price),
      slot: placeValue({ start: start!, at: resourceReference }),
      button,
      nearestLabel: texts.book.taken.nearest,
      nearest: bookNearest(visit, offer, nearest),
      advice: place === undefined && nearest.length === 0 ? describeAdvice(visit) : undefined,
    },
  );
}

/** What the person has typed, or somebody else under their address. */
function detailsOf({ texts }: PageVisit, { name, note }: GetPendingBookingResponse) {
  const message = { label: texts.labels.message, value: note };
  return [{ label: texts.labels.name, value: singleLine(name) }, ...(note === undefined ? [] : [message])];
}

/** For a person with as many bookings as the rules permit. */
export function limitPage(visit: PageVisit): Page {
  const content = { ...visit.texts.book.confirm.limit, advice: describeAdvice(visit) };
  return renderPage('notice', { ...visit.frame, embedOn: [] }, content);
}
