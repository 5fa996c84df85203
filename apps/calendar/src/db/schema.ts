import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ColumnType, Generated } from 'kysely';

export interface CalendarSchema extends MessagingSchema, IdempotencySchema {
  provider: ProviderTable;
  customer: CustomerTable;
  timeslot: TimeslotTable;
  appointment: AppointmentTable;
  participation: ParticipationTable;
  participationMessage: ParticipationMessageTable;
  removedParticipation: RemovedParticipationTable;
}

/** What calendar keeps of identity's providers. */
export interface ProviderTable {
  crmId: string;
  id: string;
  reference: string;
  timeZone: string;
  version: number;
}

/** What calendar keeps of the customer service's customers. Of an erased one the id stays, so that no late copy brings the person back. */
export interface CustomerTable {
  crmId: string;
  id: string;
  providerId: string | null;
  reference: string | null;
  userName: string | null;
  email: string | null;
  mobile: string | null;
  language: string | null;
  version: number;
  refreshedAt: Generated<Date>;
  erasedAt: Date | null;
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
  crmId: string;
  id: Generated<string>;
  providerId: string;
  reference: string;
  resourceReference: string;
  startsAt: Date;
  endsAt: Date;
  /** In minutes. */
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: LocationColumn;
  state: 'CREATED' | 'BOOKABLE';
  /** Of what was asked for when it was created: tells a retry from another request with the same reference. */
  contentDigest: Buffer;
}

export type AppointmentState = 'ACTIVE' | 'CANCELLED';

export interface AppointmentTable {
  crmId: string;
  id: Generated<string>;
  providerId: string;
  reference: string;
  seriesId: string | null;
  resourceReference: string;
  productReference: string;
  contactReference: string | null;
  description: string | null;
  notes: string | null;
  address: LocationColumn;
  /** numeric: pg returns it as a text, which keeps every digit. */
  priceValue: ColumnType<string | null, number | null, number | null>;
  priceCurrency: string | null;
  startsAt: Date;
  endsAt: Date;
  capacity: number;
  /** Participations that are BOOKED or RESERVED, changed only behind a lock on this row. */
  taken: number;
  acceptBookings: boolean;
  state: Generated<AppointmentState>;
  /** As in {@link TimeslotTable}. */
  contentDigest: Buffer;
}

export interface ParticipationTable {
  crmId: string;
  id: string;
  appointmentId: string;
  /** Null for one that was embedded in the creation of its appointment; that one has the contact data itself. */
  customerId: string | null;
  reference: string;
  name: string | null;
  email: string | null;
  mobile: string | null;
  note: string | null;
  state: 'RESERVED' | 'REQUESTED' | 'BOOKED' | 'CANCELED' | 'DELETED';
  /** Placed deliberately: never refused for capacity. */
  exempt: boolean;
  /** Set exactly while RESERVED; from then on the row counts as gone. */
  reservedUntil: Date | null;
  version: Generated<number>;
}

/** The text that a caller gave with one version of a participation. */
export interface ParticipationMessageTable {
  crmId: string;
  participationId: string;
  version: number;
  text: string;
}

/** A participation that left its appointment because its customer was erased: remembered until the erasure was told to everybody. */
export interface RemovedParticipationTable {
  crmId: string;
  customerId: string;
  participationId: string;
  appointmentId: string;
  version: number;
}
