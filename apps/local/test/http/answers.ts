import type { Practice } from './crm.ts';

/** The fields of responses about the calendar that tests read. */
export interface Participation {
  reference: string;
  name: string;
  state: string;
  messages: string[] | null;
  expiresAt?: string;
}

export interface Appointment {
  reference: string;
  start: string;
  end: string;
  seriesId: string | null;
  state: string;
  participations: Participation[];
}

export interface Timeslot {
  reference: string;
  start: string;
  end: string;
  appointments: Appointment[];
}

export const apiInfo = { version: '1' };

/** One appointment, from the list of its provider. */
export async function readAppointment({ crm, at }: Practice, reference: string): Promise<Appointment> {
  const { body } = await crm.get<Appointment[]>(`${at}/appointments`);
  return body.find((appointment) => appointment.reference === reference)!;
}
