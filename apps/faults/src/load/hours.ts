import { timeOf } from './appointments.ts';
import { path } from './client.ts';
import type { Hours, HoursChange, HoursWindow, Provider } from './model.ts';
import { firstSlotDayMs, listSlots, resourcesWithHours, whileSomeBook } from './slots.ts';
import type { Worker } from './worker.ts';

const dayMs = 24 * 3_600_000;
const everyDay = ['1', '2', '3', '4', '5', '6', '7'];
/** As long as no run lasts: a day of slots is used up in a minute. */
const openDays = 14;
/** They end before what is made ahead does, so midnight adds nothing. */
const days = { validFrom: dateOf(0), validUntil: dateOf(openDays - 1), aheadDays: 60 };

const morning = windowOf('08:00', '12:00', { raster: 30 });
const afternoon = windowOf('13:00', '18:00', { raster: 30 });

/** Each closes what another one opens, and some have a window in common, whose timeslots stay. */
const variants: Hours[] = [
  { ...days, weekly: [morning, afternoon].map(onEveryDay), exceptions: [] },
  {
    ...days,
    weekly: [morning].map(onEveryDay),
    exceptions: exceptionsOn(1, 3, [windowOf('10:00', '16:00', { raster: 60, bufferBefore: 30 })]),
  },
  {
    ...days,
    weekly: [windowOf('07:00', '12:00', { raster: 60, defaultCapacity: 2 }), afternoon].map(onEveryDay),
    exceptions: exceptionsOn(0, 1, []),
  },
  { ...days, weekly: [{ ...morning, bufferAfter: 15 }, afternoon].map(onEveryDay), exceptions: [] },
];

/** Of one resource or of all. Some book what the resource offered before: at the same moment, and when it is done. */
export async function setHours(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const content = random.pick(variants);
  const resources = random.chance(0.3) ? [...resourcesWithHours] : [random.pick(resourcesWithHours)];
  const operation = journal.begin('set hours');
  const change: HoursChange = { operation, resources, content, conflicts: undefined };
  provider.hours.push(change);
  const [first] = resources as [string];
  const isForMany = resources.length > 1;
  await whileSomeBook(worker, await listSlots(worker, first), async () => {
    const answer = await provider.tenant.client.change(operation, {
      method: 'PUT',
      path: isForMany ? `${provider.at}/hours` : hoursPath(provider, first),
      body: isForMany ? { resourceReferences: resources, ...content } : content,
    });
    change.conflicts = (answer?.body as HoursChange | undefined)?.conflicts;
  });
}

export async function deleteHours({ provider, journal, random }: Worker): Promise<void> {
  const resource = random.pick(resourcesWithHours);
  const operation = journal.begin('delete hours');
  const change: HoursChange = { operation, resources: [resource], content: undefined, conflicts: undefined };
  provider.hours.push(change);
  const request = { method: 'DELETE', path: hoursPath(provider, resource) } as const;
  const answer = await provider.tenant.client.change(operation, request);
  change.conflicts = (answer?.body as HoursChange | undefined)?.conflicts;
}

export function hoursPath({ at }: Provider, resource: string): string {
  return at + path`/resource/${resource}/hours`;
}

/** A window on a day. */
export interface Opening {
  startMs: number;
  endMs: number;
  window: HoursWindow;
}

/** The windows of hours on all of their days. The time zone of the providers is UTC, and nothing is over. */
export function openingsOf(content: Hours | undefined): Opening[] {
  if (content === undefined) return [];
  return Array.from({ length: openDays }, (_, day) => dateOf(day)).flatMap((date) => {
    const exception = content.exceptions.findLast(({ from, to }) => from <= date && date <= to);
    return (exception?.windows ?? content.weekly).map((window) => ({
      startMs: Date.parse(`${date}T${window.from}Z`),
      endMs: Date.parse(`${date}T${window.to}Z`),
      window,
    }));
  });
}

function onEveryDay(window: HoursWindow): Hours['weekly'][number] {
  return { weekdays: everyDay, ...window };
}

/** From one of the days to another one. */
function exceptionsOn(first: number, last: number, windows: HoursWindow[]): Hours['exceptions'] {
  return [{ from: dateOf(first), to: dateOf(last), windows, note: null }];
}

function windowOf(from: string, to: string, fields: Pick<HoursWindow, 'raster'> & Partial<HoursWindow>): HoursWindow {
  const defaults = { defaultCapacity: 1, defaultAcceptBookings: true, address: null, bufferBefore: 0, bufferAfter: 0 };
  return { from, to, ...defaults, ...fields };
}

/** Of a day on which there are slots, YYYY-MM-DD. */
function dateOf(day: number): string {
  return timeOf(firstSlotDayMs + day * dayMs).slice(0, 10);
}
