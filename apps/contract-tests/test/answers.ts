import type { Practice } from '@scheduling/test-stack/crm';

/** The fields of responses about the calendar that tests read. */
export interface Participation {
  reference: string;
  appointmentReference: string;
  customerReference: string | null;
  name: string;
  state: string;
  messages: string[] | null;
  expiresAt?: string;
}

export interface Appointment {
  reference: string;
  start: string;
  end: string;
  capacity: number;
  seriesId: string | null;
  state: string;
  participations: Participation[];
}

export interface Timeslot {
  reference: string;
  start: string;
  end: string;
  state: string;
  bufferBefore: number;
  bufferAfter: number;
  fromHours: boolean;
  appointments: Appointment[];
}

export interface Slot {
  start: string;
  end: string;
  resourceReference: string;
  timeslotReference: string | null;
  appointmentReference: string | null;
  productReference: string | null;
  capacity: number;
  seats: number;
}

export interface Booking {
  participation: Participation;
  slot: Slot;
}

/** Appointments in the way of opening hours or a block. */
export interface Conflicts {
  appointmentReferences: string[];
  total: number;
}

export const noConflicts: Conflicts = { appointmentReferences: [], total: 0 };

export const apiInfo = { version: '1' };

/** One appointment, from the list of its provider. */
export async function readAppointment({ crm, at }: Practice, reference: string): Promise<Appointment> {
  const { body } = await crm.get<Appointment[]>(`${at}/appointments`);
  return body.find((appointment) => appointment.reference === reference)!;
}

/** Of the day of `newTimeslot`, unless the query says otherwise. */
export async function listSlots(
  { crm, at }: Practice,
  query: Record<string, string | number | boolean> = {},
): Promise<Slot[]> {
  const { status, body, text } = await crm.get<Slot[]>(`${at}/slots`, {
    query: { from: '2031-03-03T00:00', to: '2031-03-04T00:00', ...query },
  });
  if (status !== 200) throw new Error(`expected 200, was ${status}: ${text}`);
  return body;
}
