import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ColumnType, Generated } from 'kysely';

export interface CalendarSchema extends MessagingSchema, IdempotencySchema {
  provider: ProviderTable;
  customer: CustomerTable;
  timeslot: TimeslotTable;
  appointment: AppointmentTable;
  participation: ParticipationTable;
  participation_message: ParticipationMessageTable;
  removed_participation: RemovedParticipationTable;
}

/** What calendar keeps of identity's providers. */
export interface ProviderTable {
  crm_id: string;
  id: string;
  reference: string;
  time_zone: string;
  version: number;
}

/** What calendar keeps of the customer service's customers. Of an erased one the id stays, so that no late copy brings the person back. */
export interface CustomerTable {
  crm_id: string;
  id: string;
  provider_id: string | null;
  reference: string | null;
  user_name: string | null;
  email: string | null;
  mobile: string | null;
  language: string | null;
  version: number;
  refreshed_at: Generated<Date>;
  erased_at: Date | null;
}

export interface PostalAddress {
  city?: string | undefined;
  countryCode?: string | undefined;
  street?: string | undefined;
  number?: string | undefined;
  zip?: string | undefined;
}

/** An address, or a free text such as a link to a video call. */
export type Location = PostalAddress | string;

/** pg would send a text as it is, which is no JSON; so locations are written as JSON texts. */
type LocationColumn = ColumnType<Location | null, string | null, string | null>;

export interface TimeslotTable {
  crm_id: string;
  id: Generated<string>;
  provider_id: string;
  reference: string;
  resource_reference: string;
  starts_at: Date;
  ends_at: Date;
  /** In minutes. */
  raster: number;
  default_capacity: number;
  default_accept_bookings: boolean;
  address: LocationColumn;
  state: 'CREATED' | 'BOOKABLE';
  /** Of what was asked for when it was created: tells a retry from another request with the same reference. */
  content_digest: Buffer;
}

export type AppointmentState = 'ACTIVE' | 'CANCELLED';

export interface AppointmentTable {
  crm_id: string;
  id: Generated<string>;
  provider_id: string;
  reference: string;
  series_id: string | null;
  resource_reference: string;
  product_reference: string;
  contact_reference: string | null;
  description: string | null;
  notes: string | null;
  address: LocationColumn;
  /** numeric: pg returns it as a text, which keeps every digit. */
  price_value: ColumnType<string | null, number | null, number | null>;
  price_currency: string | null;
  starts_at: Date;
  ends_at: Date;
  capacity: number;
  /** Participations that are BOOKED or RESERVED, changed only behind a lock on this row. */
  taken: number;
  accept_bookings: boolean;
  state: Generated<AppointmentState>;
  /** As in {@link TimeslotTable}. */
  content_digest: Buffer;
}

export interface ParticipationTable {
  crm_id: string;
  id: string;
  appointment_id: string;
  /** Null for one that was embedded in the creation of its appointment; that one has the contact data itself. */
  customer_id: string | null;
  reference: string;
  name: string | null;
  email: string | null;
  mobile: string | null;
  note: string | null;
  state: 'RESERVED' | 'REQUESTED' | 'BOOKED' | 'CANCELED' | 'DELETED';
  /** Placed deliberately: never refused for capacity. */
  exempt: boolean;
  /** Set exactly while RESERVED; from then on the row counts as gone. */
  reserved_until: Date | null;
  version: Generated<number>;
}

/** The text that a caller gave with one version of a participation. */
export interface ParticipationMessageTable {
  crm_id: string;
  participation_id: string;
  version: number;
  text: string;
}

/** A participation that left its appointment because its customer was erased: remembered until the erasure was told to everybody. */
export interface RemovedParticipationTable {
  crm_id: string;
  customer_id: string;
  participation_id: string;
  appointment_id: string;
  version: number;
}
