import {
  AskMobile,
  Confirmation,
  type PageOffer,
  type PagePlace,
  type PageTime,
  type Price,
} from '@scheduling/contracts/calendar/v1';
import { formatPrice, formatTimes, linesOfLocation, singleLine } from '@scheduling/presentation';
import { describeAdvice } from '../describe-advice.ts';
import { type Page, renderPage } from '../render-page.ts';
import type { PersonField } from '../texts/texts.ts';
import { forWhom, mailsTo } from './describe-invited.ts';
import { termsOf } from './describe-offers.ts';
import { dateIn, describeNearest, resourceNameOf } from './describe-page-week.ts';
import type { ChosenPlace } from './page-links.ts';
import { placeValue } from './page-request.ts';
import type { PageVisit } from './page-visit.ts';
import { fieldsAsked, maxLengths, type Problems, type Typed } from './person-fields.ts';
import { describePagePeriod } from './second-zone.ts';

/** The form that books what is chosen. */
export interface BookingForm {
  choice: string;
  chosen: ChosenPlace;
  offer: PageOffer;
  typed: Typed;
  /** What can be booked there. */
  place: PagePlace | undefined;
  /** If nothing can any more: the nearest times. */
  nearest: PageTime[];
  problems: Problems;
  /** What else has kept it from being booked. */
  error: 'taken' | 'changed' | undefined;
  /** The price that a form has shown, without a place. */
  shownPrice: string;
}

export function formPage(visit: PageVisit, form: BookingForm): Page {
  const { page, texts, links, otherLinks } = visit;
  const { choice, chosen, place, nearest, problems } = form;
  const isRequest = page.confirmation === Confirmation.REQUESTED;
  const { otherTime, book, request } = texts.book.form;
  const title = titleOf(visit, isRequest);
  const error = errorOf(visit, form);
  return renderPage(
    'page-form',
    { ...visit.frame, otherLanguageHref: otherLinks.form(choice, chosen) },
    {
      title: error ? `${texts.error}: ${title}` : title,
      heading: title,
      error,
      forWhom: [...forWhom(visit), ...mailsTo(visit)],
      terms: place ? undefined : [singleLine(form.offer.name), termsOf(visit, form.offer)].join(' · '),
      facts: place && factsOf(visit, { offer: form.offer, at: chosen.at }, place),
      notes: place && notesOf(visit, place, isRequest),
      otherTime: {
        href: links.week(chosen, { date: dateIn(chosen.start, page.timeZone), choice }),
        text: otherTime,
      },
      action: links.form(choice, chosen),
      price: place ? shownPriceOf(place.price) : form.shownPrice,
      nearest: bookNearest(visit, form.offer, nearest),
      allTimes: texts.book.form.allTimes,
      nearestLabel: texts.book.taken.nearest,
      fields: fieldsOf(visit, form),
      errorLabel: texts.error,
      button: isRequest ? request : book,
      advice:
        Object.keys(problems).length === 0 && place === undefined && nearest.length === 0
          ? describeAdvice(visit)
          : undefined,
    },
  );
}

/** Who is invited has no details to give. */
function titleOf({ page, texts: { book } }: PageVisit, isRequest: boolean): string {
  if (page.invited === undefined) return book.form.title;
  return book.confirm[isRequest ? 'request' : 'booking'].title;
}

/** Other times, each as a button that books it. */
export function bookNearest(visit: PageVisit, offer: PageOffer, times: PageTime[]) {
  const { bookAt, requestAt } = visit.texts.book.form;
  const write = visit.page.confirmation === Confirmation.REQUESTED ? requestAt : bookAt;
  return times.map((time) => {
    const { text, also } = describeNearest(visit, offer, time);
    return { value: placeValue({ start: time.start!, at: time.resourceReference }), text: write(text), also };
  });
}

/** What was wrong, with a link to each field. */
function errorOf(visit: PageVisit, { error, problems, place, nearest }: BookingForm) {
  const { invalid, problems: problemTexts } = visit.texts.book.form;
  const links = (Object.keys(problems) as PersonField[]).map((field) => ({
    href: `#${field}`,
    text: problemTexts[field][problems[field]!],
  }));
  const trouble =
    troubleOf(visit, error, place, nearest.length > 0 ? visit.texts.book.taken.kept : undefined) ??
    (links.length > 0 ? { title: invalid } : undefined);
  return trouble && { ...trouble, links };
}

/**
 * What has kept a place from being booked.
 *
 * @param other what to do about the other times that are offered; undefined if there are none
 */
export function troubleOf(
  { texts, locale }: PageVisit,
  error: BookingForm['error'],
  place: PagePlace | undefined,
  other: string | undefined,
): { title: string; text?: string } | undefined {
  const { title, noneNear, freeAgain } = texts.book.taken;
  const { changed } = texts.book.form;
  switch (error) {
    case 'taken':
      return { title, text: place === undefined ? (other ?? noneNear) : freeAgain };
    case 'changed':
      return { title: changed.title, text: changed.text(place?.price && formatPrice(place.price, locale)) };
    case undefined:
      return undefined;
    default:
      return error satisfies never;
  }
}

/** What is to be booked at a place. */
export function factsOf(visit: PageVisit, { offer, at }: { offer: PageOffer; at: string }, place: PagePlace) {
  const { provider, texts, locale } = visit;
  return {
    labels: texts.labels,
    what: singleLine(place.description ?? '') || singleLine(offer.name),
    period: describePagePeriod(visit, place),
    where: linesOfLocation(place.address, locale),
    resource: resourceNameOf(offer, at),
    provider: singleLine(provider.name),
    contact: [],
    details:
      place.price && place.price.value > 0
        ? [{ label: texts.labels.price, value: formatPrice(place.price, locale) }]
        : [],
  };
}

function notesOf({ page, texts, locale }: PageVisit, { heldUntil }: PagePlace, isRequest: boolean): string[] {
  const { isHeld, notHeld, needsConfirmation } = texts.book.form;
  if (heldUntil === undefined) return [isRequest ? needsConfirmation : notHeld];
  const [, time] = formatTimes(heldUntil, heldUntil, page.timeZone, locale).lines;
  return [isHeld(time!), ...(isRequest ? [needsConfirmation] : [])];
}

/** A price as the form sends it back: what the person has agreed to. */
export function shownPriceOf(price: Price | undefined): string {
  return price ? `${price.value} ${price.currency}` : '';
}

export function readShownPrice(text: string): Price | undefined {
  const [, value = '', currency] = /^(\S+) ([A-Z]{3})$/.exec(text) ?? [];
  return currency !== undefined && Number.isFinite(Number(value)) ? { value: Number(value), currency } : undefined;
}

interface FieldView {
  id: PersonField;
  label: string;
  /** Of an input; undefined: a text of several lines. */
  type?: 'text' | 'email' | 'tel';
  autocomplete?: string;
  isRequired: boolean;
  hint?: string;
  maxLength: number;
  value: string;
  problem: string | undefined;
}

function fieldsOf({ page, provider, texts }: PageVisit, { typed, problems }: BookingForm): FieldView[] {
  const { labels, optional, problems: problemTexts } = texts.book.form;
  const { name, email, mobile } = labels;
  const isMobileRequired = page.askMobile === AskMobile.REQUIRED;
  const views: Record<PersonField, Pick<FieldView, 'label' | 'isRequired'> & Partial<FieldView>> = {
    name: { label: name, type: 'text', autocomplete: 'name', isRequired: true },
    email: { label: email, type: 'email', autocomplete: 'email', isRequired: true },
    mobile: {
      label: isMobileRequired ? mobile : optional(mobile),
      type: 'tel',
      autocomplete: 'tel',
      isRequired: isMobileRequired,
    },
    message: {
      label: texts.cancel.message(singleLine(provider.name)),
      hint: texts.cancel.hint,
      isRequired: false,
    },
  };
  return fieldsAsked(page).map((id) => ({
    id,
    ...views[id],
    maxLength: maxLengths[id],
    value: typed[id],
    problem: problems[id] && problemTexts[id][problems[id]],
  }));
}
