import type { WebhookEvent as FeedEvent } from '@scheduling/embedded';
import type { Journal } from '../load/journal.ts';
import { blocksPath } from '../load/blocks.ts';
import { hoursPath } from '../load/hours.ts';
import type { Hours, Provider, State, Tenant, User } from '../load/model.ts';
import { timeOf } from '../load/appointments.ts';
import { path } from '../load/client.ts';
import type { Recovery } from '../load/probe.ts';
import type { PassingCrm } from '../load/short-lived-providers.ts';
import { firstSlotDayMs, resources, resourcesWithHours } from '../load/slots.ts';
import type { PlannedFault } from '../faults/plan.ts';
import type { System } from '../system/start-system.ts';

/** What a fault really did, and when. */
export interface InjectedFault extends PlannedFault {
  startedMs: number;
  endedMs: number;
  /** False if it could not be done, for example because a process did not get to the point where it was to end. */
  hasHappened: boolean;
  /** If it is one after which bookings have to be accepted again. */
  recovery?: Recovery | undefined;
}

/** What there is to see when everything is whole again and nothing more happens. */
export interface Evidence {
  system: System;
  journal: Journal;
  tenants: Tenant[];
  /** All of its providers are deleted. */
  passing: PassingCrm;
  injected: InjectedFault[];
  lists: Map<Provider, Lists>;
  /** The users as they are shown, or undefined for those that are not. */
  users: Map<User, { lastName: string } | undefined>;
  feeds: Map<Tenant, Feed>;
  /** When the load began, on the clock of `performance`. */
  loadStartedMs: number;
}

export interface Feed {
  /** As it was when the lists were read. */
  read: FeedEvent[];
  /** As it was read while it grew, until a little later. */
  followed: readonly FeedEvent[];
  /** The ids of the events that came to the webhook, in this order, without repetitions, until later still. */
  delivered: readonly string[];
}

/** Everything that the API shows of a provider. */
export interface Lists {
  appointments: ShownAppointment[];
  participations: ShownParticipation[];
  customers: { customerReference: string; userName: string }[];
  timeslots: ShownTimeslot[];
  /** Of the resources that have any. */
  hours: Map<string, Hours>;
  blocks: { reference: string; resourceReference: string; start: string; end: string }[];
}

export interface ShownTimeslot {
  reference: string;
  resourceReference: string;
  start: string;
  end: string;
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: string | null;
  bufferBefore: number;
  bufferAfter: number;
  state: 'CREATED' | 'BOOKABLE';
  fromHours: boolean;
}

export interface ShownAppointment {
  reference: string;
  capacity: number;
  state: 'ACTIVE' | 'CANCELLED';
  start: string;
  end: string;
  resourceReference: string;
  productReference: string;
  description: string | null;
  seriesId: string | null;
  participations: ShownParticipation[];
}

export interface ShownParticipation {
  reference: string;
  appointmentReference: string;
  customerReference: string | null;
  name: string;
  state: State;
  /** Of a reservation. */
  expiresAt?: string;
  /** Once the person has said that they will be there. */
  attendanceConfirmedAt?: string;
}

/** A broken promise: the number of the invariant, and what was seen. */
export interface Violation {
  invariant: `I${number}`;
  text: string;
}

const yearMs = 365 * 24 * 3_600_000;

export async function readLists(provider: Provider): Promise<Lists> {
  const { tenant, at } = provider;
  const read = async <T>(address: string, query?: Record<string, string>): Promise<T> =>
    (await tenant.client.read(address, query)).body as T;
  const ofResources = <T>(list: (provider: Provider, resource: string) => string): Promise<T[]> =>
    Promise.all(resources.map((resource) => read<T[]>(list(provider, resource), slotPeriod))).then((lists) =>
      lists.flat(),
    );
  const [appointments, participations, customers, timeslots, blocks, hours] = await Promise.all([
    read<ShownAppointment[]>(`${at}/appointments`),
    read<ShownParticipation[]>(`${at}/participations`),
    read<Lists['customers']>(`${at}/customers`),
    ofResources<ShownTimeslot>(timeslotsPath),
    ofResources<Lists['blocks'][number]>(blocksPath),
    readHours(provider),
  ]);
  return { appointments, participations, customers, timeslots, blocks, hours };
}

/** Of all timeslots and blocks. */
export const slotPeriod = { from: timeOf(firstSlotDayMs), to: timeOf(firstSlotDayMs + yearMs) };

export function timeslotsPath({ at }: Provider, resource: string): string {
  return at + path`/resource/${resource}/timeslots`;
}

/** What was set: not for which resource, and until when timeslots have been made. */
async function readHours(provider: Provider): Promise<Map<string, Hours>> {
  const known = new Map<string, Hours>();
  for (const resource of resourcesWithHours) {
    const { status, body } = await provider.tenant.client.read(hoursPath(provider, resource), {}, [200, 404]);
    if (status === 404) continue;
    const { weekly, exceptions, validFrom, validUntil, aheadDays } = (body as { hours: Hours }).hours;
    known.set(resource, { weekly, exceptions, validFrom, validUntil, aheadDays });
  }
  return known;
}

export async function readUser({ tenant, reference }: User): Promise<{ lastName: string } | undefined> {
  const { status, body } = await tenant.client.read(path`/user/${reference}`, {}, [200, 404]);
  return status === 200 ? (body as { user: { lastName: string } }).user : undefined;
}
