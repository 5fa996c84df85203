import { ParticipationState, type RequestedBooking } from '@scheduling/contracts/calendar/v1';
import type { PublicProvider } from '@scheduling/contracts/identity/v1';
import {
  contactOf,
  formatMoment,
  formatPrice,
  linesOfLocation,
  multiLine,
  singleLine,
  titleOf,
} from '@scheduling/presentation';
import { describeTimes } from './describe-booking.ts';
import type { PageContent, PageFrame } from './render-page.ts';
import type { DecideTexts, Stage, Texts } from './texts/texts.ts';

/** Somebody who decides for a provider, at the page of a request. */
export interface RequestVisit {
  booking: RequestedBooking;
  provider: PublicProvider;
  texts: DecideTexts;
  labels: Texts['labels'];
  /** Begins the title of a page that asks again. */
  errorTitle: string;
  locale: string;
  frame: PageFrame;
}

export interface DecisionForm {
  /** What was typed. */
  message: string;
  /** Why nothing was decided. */
  error?: 'invalidMessage' | 'changed' | 'full' | 'decided' | 'noDecision' | undefined;
}

/** The page of a request: what is asked for and by whom, or once it is decided only what was, and by whom. */
export function describeRequest(visit: RequestVisit, form: DecisionForm): PageContent {
  const { booking, provider, texts, labels, locale, errorTitle } = visit;
  const stage = stageOf(booking);
  const { title, text } = texts.stages[stage];
  const isOpen = stage === 'waiting';
  const error = form.error !== undefined && (isOpen || form.error === 'decided') ? texts.errors[form.error] : undefined;
  return {
    title: error && isOpen ? `${errorTitle}: ${title}` : title,
    heading: title,
    text: isOpen ? text : [text, decisionLine(visit)].filter(Boolean).join(' '),
    error,
    labels,
    what: titleOf(booking, provider),
    period: describeTimes({ start: booking.start!, end: booking.end!, timeZone: booking.timeZone }, locale),
    details: booking.waiting === undefined ? [] : detailsOf(visit),
    shown: booking.shown,
    form: isOpen
      ? {
          ...texts.form,
          value: form.message,
          isInvalid: form.error === 'invalidMessage',
        }
      : undefined,
  };
}

function stageOf({ state, decision, start, now }: RequestedBooking): Stage {
  switch (state) {
    case ParticipationState.REQUESTED:
      return start! <= now! ? 'lapsed' : 'waiting';
    case ParticipationState.BOOKED:
      return decision?.confirmed ? 'confirmed' : 'booked';
    default:
      // A confirmed one was cancelled afterwards.
      return decision !== undefined && !decision.confirmed ? 'declined' : 'cancelled';
  }
}

/** Who has decided, and when. */
function decisionLine({ booking: { decision, timeZone }, texts, locale }: RequestVisit): string | undefined {
  if (decision === undefined) return undefined;
  const moment = formatMoment(decision.at!, timeZone, locale);
  const by = decision.by === undefined ? undefined : singleLine(decision.by);
  return decision.confirmed ? texts.confirmedBy(by, moment) : texts.declinedBy(by, moment);
}

interface Detail {
  label: string;
  lines: { text: string; link?: string | undefined }[];
}

function detailsOf({ booking, texts, labels, locale }: RequestVisit): Detail[] {
  const { address, price } = booking;
  const { name, email, mobile, note, message, capacity, taken, others } = booking.waiting!;
  const text = (value: string) =>
    multiLine(value)
      .split('\n')
      .map((line) => ({ text: line }));
  const where = linesOfLocation(address, locale).map((line) => ({ text: line }));
  const all: Detail[] = [
    { label: texts.labels.person, lines: [{ text: singleLine(name) }, ...contactOf({ email, mobile })] },
    { label: texts.labels.message, lines: text(message ?? '') },
    { label: texts.labels.note, lines: text(note ?? '') },
    { label: labels.where, lines: where },
    { label: labels.price, lines: price && price.value > 0 ? [{ text: formatPrice(price, locale) }] : [] },
    { label: texts.labels.places, lines: [{ text: texts.places(Math.max(0, capacity - taken), capacity) }] },
    { label: texts.labels.others, lines: others > 0 ? [{ text: texts.others(others) }] : [] },
  ];
  return all.filter(({ lines }) => lines.some((line) => line.text !== ''));
}
