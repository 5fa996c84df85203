import { Instant, ZoneId } from '@js-joda/core';
// Its time zones are data of its own. The services use those of Node.
// oxlint-disable-next-line import/no-unassigned-import -- it adds the zones to the other package
import '@js-joda/timezone';

/** Times on a wall clock are written as milliseconds, as if the clock showed UTC. */
export interface ClockChange {
  atMs: number;
  minutesBefore: number;
  minutesAfter: number;
}

const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;
/** Within this time of any local time there is at most one change in the zones and years that are read. */
const aroundMs = 36 * hourMs;

/** What the clocks of a zone show, asked for one instant at a time. */
export class ClockReader {
  readonly #zone: ZoneId;

  constructor(name: string) {
    this.#zone = ZoneId.of(name);
  }

  /** What the clock shows at an instant. */
  wallAt(atMs: number): number {
    return atMs + this.#offsetMs(atMs);
  }

  /** The instants at which the clock shows this: none, one or two, in order. */
  instantsOf(wallMs: number): number[] {
    const offsets = new Set([this.#offsetMs(wallMs - aroundMs), this.#offsetMs(wallMs + aroundMs)]);
    return [...offsets]
      .map((offsetMs) => wallMs - offsetMs)
      .filter((atMs) => this.wallAt(atMs) === wallMs)
      .sort((a, b) => a - b);
  }

  /**
   * By the rules of the interface: the first of two, and with the offset before the change if the clock never shows it.
   */
  instantOf(wallMs: number): number {
    return this.instantsOf(wallMs)[0] ?? wallMs - this.#offsetMs(wallMs - aroundMs);
  }

  /** Whether the clock ever shows this date. */
  hasDate(dateMs: number): boolean {
    for (let wallMs = dateMs; wallMs < dateMs + dayMs; wallMs += hourMs)
      if (this.instantsOf(wallMs).length > 0) return true;
    return false;
  }

  changesIn(year: number): ClockChange[] {
    const changes: ClockChange[] = [];
    for (let dayStartMs = Date.UTC(year, 0, 1); dayStartMs < Date.UTC(year + 1, 0, 1); dayStartMs += dayMs) {
      let [before, after] = [dayStartMs, dayStartMs + dayMs];
      if (this.#offsetMs(before) === this.#offsetMs(after)) continue;
      while (after - before > minuteMs) {
        const middle = before + Math.floor((after - before) / 2 / minuteMs) * minuteMs;
        if (this.#offsetMs(middle) === this.#offsetMs(before)) before = middle;
        else after = middle;
      }
      changes.push({
        atMs: after,
        minutesBefore: this.#offsetMs(before) / minuteMs,
        minutesAfter: this.#offsetMs(after) / minuteMs,
      });
    }
    return changes;
  }

  #offsetMs(atMs: number): number {
    return this.#zone.rules().offset(Instant.ofEpochMilli(atMs)).totalSeconds() * 1_000;
  }
}

/** A date and a time of a mail. */
export interface ReadTime {
  wallMs: number;
  /** Undefined: the mail does not name the offset. */
  offsetMs: number | undefined;
}

const months = [
  ['jan'],
  ['feb'],
  ['mar', 'mär'],
  ['apr'],
  ['may', 'mai'],
  ['jun'],
  ['jul'],
  ['aug'],
  ['sep'],
  ['oct', 'okt'],
  ['nov'],
  ['dec', 'dez'],
];

/**
 * Start and end as a person reads them in an English or German mail: "Sunday, October 27, 2024" and "5:30 – 8:00 AM",
 * "02:45 Uhr (UTC+2) – 02:15 Uhr (UTC+1)".
 */
export function readPeriod(lines: string): [ReadTime, ReadTime] {
  const dates = [
    ...lines.matchAll(
      /(?<day>\d{1,2})\.? (?<month>\p{L}+) (?<year>\d{4})|(?<month>\p{L}+) (?<day>\d{1,2}), (?<year>\d{4})/gu,
    ),
  ].map(({ groups }) => {
    const month = months.findIndex((names) => names.includes(groups!['month']!.slice(0, 3).toLowerCase()));
    return Date.UTC(Number(groups!['year']), month, Number(groups!['day']));
  });
  const times = [...lines.matchAll(/(\d{1,2}):(\d\d)(?:\s(?:([AP]M)|Uhr))?(?: \((UTC(?:[+−]\d+(?::\d\d)?)?)\))?/g)];
  if (dates.length === 0 || times.length !== 2) throw new Error(`no period: ${lines}`);
  const halfOfDay = times[1]![3];
  const [start, end] = times.map(([, hours, minutes, half = halfOfDay, offset], index): ReadTime => ({
    wallMs:
      (dates[index] ?? dates[0]!) +
      (half === undefined ? Number(hours) : (Number(hours) % 12) + (half === 'PM' ? 12 : 0)) * hourMs +
      Number(minutes) * minuteMs,
    offsetMs: offset === undefined ? undefined : readOffset(offset),
  }));
  return [start!, end!];
}

function readOffset(text: string): number {
  const [hours = '0', minutes = '0'] = text.slice(4).split(':');
  return (text.includes('−') ? -1 : 1) * (Number(hours) * hourMs + Number(minutes) * minuteMs);
}
