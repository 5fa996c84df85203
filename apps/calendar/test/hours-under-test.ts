import type { Hours, Conflicts, HoursWindow } from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import type { Calendar } from './calendar-under-test.ts';
import { recordOf } from './hours-reader.ts';

export interface RoomKey {
  crmId: string;
  providerReference: string;
  resourceReference: string;
}

/** Hours as an object of the REST interface. */
export interface HoursJson {
  resourceReference: string;
  madeUntil: string | null;
}

/** A timeslot as an object of the REST interface. */
export interface TimeslotJson {
  reference: string;
  start: string;
  end: string;
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: unknown;
  bufferBefore: number;
  bufferAfter: number;
  state: 'CREATED' | 'BOOKABLE';
  fromHours: boolean;
  /** Those that lie in it. */
  appointments: { state: 'ACTIVE' | 'CANCELLED' }[];
}

/** From 9 to 12 on every day, unless stated otherwise. */
export function newWindow(overrides: Partial<HoursWindow> = {}): HoursWindow {
  return {
    weekdays: ['1', '2', '3', '4', '5', '6', '7'],
    from: '09:00',
    to: '12:00',
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    ...overrides,
  };
}

export function newHours(overrides: Partial<Hours> = {}): Hours {
  return { weekly: [], exceptions: [], aheadDays: 92, ...overrides };
}

export async function putHours(
  { hours: client }: Calendar,
  key: RoomKey,
  hours: Hours,
): Promise<{ hours: HoursJson; conflicts: Conflicts }> {
  const { json, conflicts } = await patiently(() => client.putHours({ ...key, hours }));
  return { hours: JSON.parse(json.toString()) as HoursJson, conflicts: conflicts! };
}

/** The record of hours, without what depends on the time. */
export function hoursRecord({ resourceReference }: Pick<RoomKey, 'resourceReference'>, hours: Hours) {
  const { weekly, exceptions, validFrom = null, validUntil = null, aheadDays } = hours;
  const windowOf = (window: HoursWindow) => {
    const { from, to, raster, defaultCapacity, defaultAcceptBookings, bufferBefore = 0, bufferAfter = 0 } = window;
    const address = recordOf(window.address);
    return { from, to, raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter };
  };
  return {
    resourceReference,
    weekly: weekly.map((window) => ({ weekdays: window.weekdays, ...windowOf(window) })),
    exceptions: exceptions.map(({ from, to, windows, note = null }) => ({
      from,
      to,
      windows: windows.map(windowOf),
      note,
    })),
    validFrom,
    validUntil,
    aheadDays,
  };
}

/** All timeslots of a resource that overlap the period. */
export async function listTimeslots(
  { timeslots }: Calendar,
  key: RoomKey,
  from: Date,
  to: Date,
): Promise<TimeslotJson[]> {
  const request = { ...key, from: from.toISOString(), to: to.toISOString() };
  const listed: TimeslotJson[] = [];
  let continuation: string | undefined;
  do {
    const part = await patiently(() => timeslots.listTimeslots({ ...request, continuation }));
    for (const [index, { json, appointmentsJson }] of part.timeslots.entries()) {
      const appointments = JSON.parse(`[${appointmentsJson.toString()}]`) as TimeslotJson['appointments'];
      if (part.continued && index === 0) listed.at(-1)!.appointments.push(...appointments);
      else listed.push({ ...(JSON.parse(json.toString()) as Omit<TimeslotJson, 'appointments'>), appointments });
    }
    ({ continuation } = part);
  } while (continuation !== undefined);
  return listed;
}
