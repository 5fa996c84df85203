import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Provider } from '@scheduling/contracts/identity/v1';
import { formatPeriod, linesOfLocation, type Period, singleLine } from '@scheduling/presentation';
import type { Texts } from '../language/texts.ts';
import type { Earlier } from './describe-appointment.ts';
import { removeLinks } from './remove-links.ts';

/** What is different from what the person was told before. */
export interface Changes {
  time: boolean;
  place: boolean;
  title: boolean;
}

type Facts = Pick<GetParticipationMailDataResponse, 'start' | 'end' | 'description' | 'address' | 'previous'>;

/** Undefined if it is not certain what the person was told. */
export function changesOf({ previous, start, end, description, address }: Facts): Changes | undefined {
  if (previous === undefined) return undefined;
  const place = (where: Facts['address']) => linesOfLocation(where, 'en').join('\n');
  return {
    time: previous.start!.getTime() !== start!.getTime() || previous.end!.getTime() !== end!.getTime(),
    place: place(previous.address) !== place(address),
    title: singleLine(previous.description ?? '') !== singleLine(description ?? ''),
  };
}

/** Undefined if nothing is different. */
export function earlierOf(
  facts: Facts,
  { timeZone }: Provider,
  locale: string,
  { changes: { previously } }: Texts,
): Earlier | undefined {
  const changes = changesOf(facts);
  if (changes === undefined || facts.previous === undefined) return undefined;
  const { start, end, description, address } = facts.previous;
  const zone = formatPeriod(facts.start!, facts.end!, timeZone, locale).zone;
  const period = changes.time ? inOneLine(formatPeriod(start!, end!, timeZone, locale), zone) : undefined;
  const whereOf = (place: Facts['address']) =>
    removeLinks(linesOfLocation(place, locale).join('\n')).split('\n').join(', ');
  const nameOf = (text: string | undefined) => singleLine(removeLinks(text ?? ''));
  const where = changes.place && whereOf(address) !== whereOf(facts.address) ? whereOf(address) : '';
  const title = changes.title && nameOf(description) !== nameOf(facts.description) ? nameOf(description) : '';
  if (!title && !period && !where) return undefined;
  return { label: previously, title: title || undefined, period, where: where || undefined };
}

/** With its time zone if that is not the given one. */
function inOneLine({ lines, isOneDay, zone }: Period, knownZone: string): string {
  const line = lines.join(isOneDay ? ', ' : ' ');
  return zone === knownZone ? line : `${line} (${zone})`;
}

/** Which of the texts says what has changed. */
export function leadOfChanges({ time, place, title }: Changes, { changes: { leads } }: Texts): string {
  if (time) return place ? leads.timeAndPlace : leads.time;
  if (place) return leads.place;
  return title ? leads.title : leads.nothing;
}
