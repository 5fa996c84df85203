import type { ListPageTimesResponse, PageOffer, PageTime } from '@scheduling/contracts/calendar/v1';
import { formatDay, formatTimes, singleLine } from '@scheduling/presentation';
import { describeAdvice } from '../describe-advice.ts';
import { describeDays, describeSpan, describeWeeks } from '../describe-week.ts';
import { type Page, type PageContent, renderPage } from '../render-page.ts';
import { forWhom } from './describe-invited.ts';
import { termsOf } from './describe-offers.ts';
import type { Wish } from './page-links.ts';
import type { PageVisit } from './page-visit.ts';
import { createSecondTimes, dayIn } from './second-zone.ts';

export interface PageWeek extends Wish {
  /** An earlier choice. */
  choice: string | undefined;
  found: ListPageTimesResponse;
  /** After a time was chosen that is not free any more: the nearest ones. */
  nearest?: PageTime[];
}

/** The times of a week at which an offer can be booked, each of which is a button. */
export function weekPage(visit: PageVisit, offer: PageOffer, week: PageWeek): Page {
  const { texts, links, otherLinks, page } = visit;
  const { choice, nearest, found } = week;
  const title = texts.book.week.title(singleLine(offer.name));
  const { title: taken, text, noneNear } = texts.book.taken;
  const frame = { ...visit.frame, otherLanguageHref: otherLinks.week(week, { date: found.monday, choice }) };
  return renderPage('page-week', frame, {
    title: nearest ? `${texts.error}: ${title}` : title,
    heading: singleLine(offer.name),
    error: nearest && { title: taken, text: nearest.length > 0 ? text : noneNear },
    nearest: (nearest ?? []).map((time) => ({
      value: time.start!.toISOString(),
      ...describeNearest(visit, offer, time),
    })),
    nearestLabel: texts.book.taken.nearest,
    terms: termsOf(visit, offer),
    forWhom: forWhom(visit),
    people: peopleOf(visit, offer, week),
    ...timesOf(visit, week),
    action: links.hold,
    hidden: Object.entries({ offer: week.offer, with: week.with, choice }).filter(([, value]) => value !== undefined),
    back: page.offers.length > 1 ? { href: links.offers, text: texts.book.week.allOffers } : undefined,
  });
}

/** With whom it can be booked, if there is a choice. */
function peopleOf(
  { texts, links }: PageVisit,
  { resources }: PageOffer,
  { offer, with: present, found, choice }: PageWeek,
) {
  if (resources.length < 2) return undefined;
  const { people, anyone } = texts.book.week;
  const all = [{ resourceReference: undefined, name: anyone }, ...resources];
  return {
    label: people,
    links: all.map(({ resourceReference, name }) => ({
      // The week stays, as long as it has times to compare.
      href: links.week(
        { offer, with: resourceReference },
        { date: found.times.length > 0 ? found.monday : undefined, choice },
      ),
      text: singleLine(name),
      isCurrent: resourceReference === present,
    })),
  };
}

function timesOf(visit: PageVisit, week: PageWeek): Omit<PageContent, 'title'> {
  const { page, texts, locale, links, secondZone } = visit;
  const { monday, times, hasPrevious, hasNext, next } = week.found;
  const { choice } = week;
  if (monday === undefined) return { days: [], empty: texts.move.none.text, advice: describeAdvice(visit), weeks: [] };
  const place = { timeZone: page.timeZone, locale };
  const first = Temporal.PlainDate.from(monday);
  const { zone, range } = describeSpan(place, first);
  const secondTime = createSecondTimes(visit);
  const linkTo = (days: number): string => links.week(week, { date: first.add({ days }).toString(), choice });
  const nextDay = next && dateIn(next, page.timeZone);
  return {
    zone: texts.move.zone(zone),
    secondZone: secondZone && texts.book.week.secondZone(describeSpan(place, first, secondZone).zone),
    range,
    days: describeDays(place, times, ({ start, end }) => ({
      value: start!.toISOString(),
      also: secondTime(start!, end!),
    })),
    empty: texts.move.emptyWeek,
    next: nextDay && {
      href: links.week(week, { date: nextDay, choice }),
      text: texts.book.week.next(dayLabel(visit, nextDay)),
    },
    advice: times.length === 0 && nextDay === undefined ? describeAdvice(visit) : undefined,
    weeks: describeWeeks({ hasPrevious, hasNext }, texts, linkTo),
    weeksLabel: texts.move.weeks,
  };
}

/** A time with its day, within a few weeks, and with whom it is if that is a choice. */
export function describeNearest(visit: PageVisit, offer: PageOffer, time: PageTime) {
  const { page, locale } = visit;
  const { start, end, resourceReference } = time;
  const { lines, isOneDay } = formatTimes(start!, end!, page.timeZone, locale);
  const name = offer.resources.length > 1 ? resourceNameOf(offer, resourceReference) : undefined;
  // With word joiners: a line must not end within the times.
  const text = isOneDay
    ? `${dayLabel(visit, dateIn(start!, page.timeZone))}, ${lines[1]!.replaceAll('–', '\u2060–\u2060')}`
    : lines.join(' ');
  return {
    text: name ? `${text} (${name})` : text,
    // In the second zone.
    also: createSecondTimes(visit)(start!, end!),
  };
}

/** A day without its year, whose month stays in the line of the day. */
function dayLabel({ page, locale }: PageVisit, date: string): string {
  return formatDay(date, page.timeZone, locale).replace(/ (?=\S+$)/, '\u00A0');
}

export function resourceNameOf({ resources }: PageOffer, reference: string): string | undefined {
  const name = resources.find(({ resourceReference }) => resourceReference === reference)?.name;
  return name === undefined ? undefined : singleLine(name);
}

/** YYYY-MM-DD. */
export function dateIn(at: Date, timeZone: string): string {
  return dayIn(at, timeZone).toString();
}
