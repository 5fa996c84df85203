import ICAL from 'ical.js';

/** What a calendar program did with a calendar file. */
export type Effect =
  | 'added'
  | 'replaced'
  | 'removed'
  /** Of an event that it does not have. */
  | 'removed nothing'
  /** By somebody who did not organize the event. */
  | 'refused'
  /** Of an event of which it knows something newer. */
  | 'outdated';

interface Entry {
  uid: string;
  title: string;
  start: Date;
  end: Date;
}

/**
 * The calendar of a person, kept by RFC 5546: the newest message about an event counts, and only its organizer changes
 * it.
 */
export class Diary {
  readonly #known = new Map<string, { sequence: number; organizer: string; entry: Entry | undefined }>();

  receive(text: string): Effect {
    const { uid, sequence, organizer, summary: title } = eventOf(text);
    const known = this.#known.get(uid);
    if (known !== undefined && known.sequence > sequence) return 'outdated';
    if (known !== undefined && known.organizer !== organizer) return 'refused';
    const cancels = readCalendar(text).getFirstPropertyValue('method') === 'CANCEL';
    this.#known.set(uid, { sequence, organizer, entry: cancels ? undefined : { uid, title, ...periodOf(text) } });
    if (cancels) return known?.entry === undefined ? 'removed nothing' : 'removed';
    return known?.entry === undefined ? 'added' : 'replaced';
  }

  get entries(): Entry[] {
    return [...this.#known.values()].flatMap(({ entry }) => entry ?? []);
  }
}

export const readCalendar = (text: string): ICAL.Component => new ICAL.Component(ICAL.parse(text) as unknown[]);
export const eventOf = (text: string): ICAL.Event => new ICAL.Event(readCalendar(text).getFirstSubcomponent('vevent')!);

/** When the event of a calendar file takes place, by the time zone in the file. */
export function periodOf(text: string): { start: Date; end: Date } {
  const zone = readCalendar(text).getFirstSubcomponent('vtimezone');
  if (zone)
    ICAL.TimezoneService.register(
      new ICAL.Timezone({ component: zone, tzid: String(zone.getFirstPropertyValue('tzid')) }),
    );
  const { startDate, endDate } = eventOf(text);
  const period = { start: startDate.toJSDate(), end: endDate.toJSDate() };
  ICAL.TimezoneService.reset();
  return period;
}
