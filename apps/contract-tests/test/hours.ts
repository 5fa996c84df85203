import { path } from '@scheduling/test-stack/client';
import type { Practice } from '@scheduling/test-stack/crm';
import type { Conflicts } from './answers.ts';

/** When a resource is open, as the API shows it. */
export interface Window {
  from: string;
  to: string;
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  bufferBefore: number;
  bufferAfter: number;
  address: unknown;
}

/** Opening hours as the API shows them. */
export interface Hours {
  resourceReference: string;
  weekly: (Window & { weekdays: string[] })[];
  exceptions: { from: string; to: string; windows: Window[]; note: string | null }[];
  validFrom: string | null;
  validUntil: string | null;
  aheadDays: number;
  madeUntil: string;
}

/** Where the opening hours of a resource are. */
export function hoursAt({ at, resource }: Pick<Practice, 'at' | 'resource'>): string {
  return at + path`/resource/${resource}/hours`;
}

/** A window of an exception: in the morning, with a raster of half an hour. */
export function newWindow(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { from: '09:00', to: '12:00', raster: 30, defaultCapacity: 1, defaultAcceptBookings: true, ...fields };
}

/** A weekly window, on every day. */
export function newWeeklyWindow(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { weekdays: ['1', '2', '3', '4', '5', '6', '7'], ...newWindow(fields) };
}

/** Valid from a day that is further away than timeslots are made. */
export function newHours(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { weekly: [newWeeklyWindow()], validFrom: '2031-01-01', ...fields };
}

export async function setHours(
  practice: Practice,
  body: Record<string, unknown>,
): Promise<{ hours: Hours; conflicts: Conflicts }> {
  const answer = await practice.crm.put<{ hours: Hours; conflicts: Conflicts }>(hoursAt(practice), body);
  if (answer.status !== 200) throw new Error(`expected 200, was ${answer.status}: ${answer.text}`);
  return answer.body;
}
