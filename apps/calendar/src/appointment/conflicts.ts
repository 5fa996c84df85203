/** Appointments that are not cancelled, and that hours or a block do not suit. */
export interface Conflicts {
  /** By start, the first 500. */
  appointmentReferences: string[];
  total: number;
}
