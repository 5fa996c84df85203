import { setTimeout as delay } from 'node:timers/promises';
import type { Noise, Send, Target } from './noise.ts';

/** So many can be given the same hours by a request. */
const resourcesAtOnce = 20;
/** For all of the 1,000 resources. */
export const hoursRequests = 50;
const dayMs = 24 * 3_600_000;

/** What a tenant with 1,000 resources can do with opening hours. */
export const hoursNoises: Noise[] = [
  { name: 'opening hours of 1,000 resources', clients: 8, act: setNextHours },
  { name: 'a day a second for the opening hours of 1,000 resources', clients: 1, act: goToNextDay },
];

let sent = 0;

/** When all resources have their hours, they get others, of which no timeslot exists. */
function setNextHours({ provider }: Target, send: Send): Promise<number> {
  const number = sent++;
  const raster = Math.floor(number / hoursRequests) % 2 === 0 ? 30 : 15;
  return send('PUT', `${provider}/hours`, hoursOfMany(number % hoursRequests, raster));
}

/** The body of one of the requests that set the hours of all resources: two windows a day, for 92 days. */
export function hoursOfMany(number: number, raster: number): string {
  const window = {
    weekdays: ['1', '2', '3', '4', '5', '6', '7'],
    raster,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
  };
  return JSON.stringify({
    resourceReferences: Array.from(
      { length: resourcesAtOnce },
      (_, index) => `resource-${number * resourcesAtOnce + index}@hours`,
    ),
    weekly: [
      { ...window, from: '09:00', to: '12:30' },
      { ...window, from: '14:00', to: '18:00' },
    ],
    aheadDays: 92,
  });
}

let days = 0;

/** By the clock of a sandbox whose resources have such hours: main.ts sets them. */
async function goToNextDay({ url, sandbox: { crmId, key } }: Target, send: Send): Promise<number> {
  const sentMs = performance.now();
  const now = new Date(Date.now() + (days += 1) * dayMs).toISOString();
  const status = await send('PUT', `${url}/crms/${crmId}/sandbox/clock`, JSON.stringify({ now }), {
    'x-service-client-id': key,
  });
  await delay(Math.max(0, sentMs + 1_000 - performance.now()));
  return status;
}
