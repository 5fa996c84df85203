import type { Selectable } from 'kysely';
import type { AppointmentTable } from './db/schema.ts';

/** What an appointment says about itself. */
export type DescribedAppointment = Omit<
  Selectable<AppointmentTable>,
  'crmId' | 'id' | 'taken' | 'contentDigest' | 'whenEmpty' | 'anonymised' | 'revision' | 'eventCount'
> & { archived: boolean };
