import type { AppointmentState, Location } from '../db/schema.ts';
import type { ParticipationState } from '../participation/moves.ts';

/** What appointment-json.sql writes. */
export interface AppointmentJson {
  reference: string;
  acceptBookings: boolean;
  address: Location | null;
  archived: boolean;
  capacity: number;
  contactReference: string | null;
  description: string | null;
  start: string;
  end: string;
  notes: string | null;
  participations: ParticipationJson[];
  price: { value: number; currency: string } | null;
  productReference: string;
  resourceReference: string;
  seriesId: string | null;
  state: AppointmentState;
}

interface ParticipationJson {
  reference: string;
  email: string | null;
  mobile: string | null;
  name: string;
  note: string | null;
  state: ParticipationState;
  messages: string[] | null;
  expiresAt?: string;
}
