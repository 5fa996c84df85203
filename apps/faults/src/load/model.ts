import type { CrmClient } from './client.ts';
import type { Operation } from './journal.ts';
import type { PageClient } from './page-client.ts';

/**
 * What the clients have made, as they know it from the answers that they got. The checks compare it with what is there.
 */

export type State = 'RESERVED' | 'REQUESTED' | 'BOOKED' | 'CANCELED' | 'DELETED';

/** A CRM. Both have the same references, and each has texts of its own. */
export interface Tenant {
  crmId: string;
  client: CrmClient;
  /** What its persons see of their bookings. */
  pages: PageClient;
  /** A word that is in every text of this CRM, and in none of the other. */
  mark: string;
  providers: Provider[];
  users: User[];
  /** A reference that this CRM has not used. */
  newReference(kind: string): string;
}

export interface Provider {
  tenant: Tenant;
  reference: string;
  /** `/provider/<reference>` */
  at: string;
  customers: Customer[];
  appointments: Appointment[];
  participations: Participation[];
  timeslots: Timeslot[];
  /** Every change of opening hours, in the order in which they began. Two may have overlapped. */
  hours: HoursChange[];
  blocks: Block[];
  series: Series[];
}

export interface Customer {
  provider: Provider;
  /** Whoever has it now. Others may have had it before. */
  reference: string;
  /** Never that of anybody else: the word by which the person is recognised is made of it. */
  person: string;
  created: Operation;
  /** The addresses that the customer was given, in this order. */
  addresses: { email: string; operation: Operation }[];
  /** The names that it was given, in this order. */
  names: { name: string; operation: Operation }[];
  erased: Operation | undefined;
}

export interface User {
  tenant: Tenant;
  reference: string;
  email: string;
  created: Operation;
  /** The last names that the user was given, in this order. */
  names: { name: string; operation: Operation }[];
  /** The only request for a verification mail. */
  verification: Operation | undefined;
  deleted: Operation | undefined;
}

/** Made by the operation that creates appointments. */
export interface Appointment {
  provider: Provider;
  reference: string;
  capacity: number;
  created: Operation;
  /** With an e-mail address each. They are BOOKED, whatever the capacity. */
  embedded: { reference: string; email: string }[];
  /** In this order: each began when the one before it had ended. */
  updates: { operation: Operation; notify: boolean }[];
  cancelled: Operation | undefined;
  deleted: Operation | undefined;
}

export interface Participation {
  provider: Provider;
  reference: string;
  customer: Customer;
  /** Undefined for a booking of a slot, which may have made an appointment. */
  appointment: Appointment | undefined;
  /** It never counts as one too many. */
  ignoresCapacity: boolean;
  changes: Change[];
  /** Those that the CRM has asked for, one for each address. */
  links: Link[];
}

/** A link to the page of a participation. */
export interface Link {
  url: string;
  /** The address of the person when it was issued. */
  email: string;
}

/** A change of a participation that its client wanted. */
export interface Change {
  operation: Operation;
  /** To which state; `moved` to another slot; `attending`: the person will be there. */
  to: State | 'moved' | 'attending';
  notify: boolean;
  /** Where a booking of a slot is, if this is accepted. */
  place?: Place;
  /** The appointment in which it is then, as the answer named it. */
  madeIn?: string | undefined;
  /** It is the person who wants it, by a link. */
  byPerson?: boolean;
}

/** An appointment to join, or a time of a timeslot. */
export interface Place {
  appointmentReference: string | null;
  timeslotReference: string | null;
  /** ISO 8601. */
  start: string;
  /** Not known of what a page offers. */
  end?: string;
  resourceReference?: string;
}

export interface Timeslot {
  provider: Provider;
  reference: string;
  resource: string;
  startMs: number;
  endMs: number;
  rasterMs: number;
  /** In minutes. */
  bufferBefore: number;
  bufferAfter: number;
  created: Operation;
  deleted: Operation | undefined;
}

/** A period of a resource in which nothing can be booked. */
export interface Block {
  reference: string;
  resource: string;
  startMs: number;
  endMs: number;
  created: Operation;
  /** Those in the answer that accepted it. */
  conflicts: Conflicts | undefined;
  deleted: Operation | undefined;
}

/** What a client sets as opening hours, and gets. */
export interface Hours {
  weekly: (HoursWindow & { weekdays: string[] })[];
  exceptions: { from: string; to: string; windows: HoursWindow[]; note: string | null }[];
  validFrom: string | null;
  validUntil: string | null;
  aheadDays: number;
}

export interface HoursWindow {
  from: string;
  to: string;
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: string | null;
  bufferBefore: number;
  bufferAfter: number;
}

/** Of the opening hours of some resources, all at once. */
export interface HoursChange {
  operation: Operation;
  resources: readonly string[];
  /** Undefined: none any more. */
  content: Hours | undefined;
  /** Those in the answer that accepted it. */
  conflicts: Conflicts | undefined;
}

/** Appointments that a change does not suit. */
export interface Conflicts {
  appointmentReferences: string[];
  total: number;
}

/** Appointments with generated references, made with an Idempotency-Key. */
export interface Series {
  product: string;
  count: number;
  created: Operation;
}

/**
 * The state after the last change that was accepted, as its client knows it; undefined if there is no participation.
 */
export function lastKnownState({ changes }: Pick<Participation, 'changes'>): State | undefined {
  let state: State | undefined;
  for (const { to, operation } of changes)
    if (operation.outcome === 'ok' && to !== 'moved' && to !== 'attending') state = to;
  return state;
}

/** The address of a customer after the last change that was accepted. */
export function lastKnownAddress({ addresses }: Pick<Customer, 'addresses'>): string {
  return addresses.findLast(({ operation }) => operation.outcome === 'ok')!.email;
}
