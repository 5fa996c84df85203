import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { periodOf } from './local-day.ts';

/** See read-day.sql. */
export interface Day {
  appointments: DayAppointment[];
  /** How many there are, listed or not. */
  booked: number;
  requested: number;
  /** How many are not listed. */
  unlisted: number;
}

export interface DayAppointment {
  startsAt: string;
  endsAt: string;
  description: string | null;
  address: Location | null;
  participations: DayParticipation[];
}

export interface DayParticipation {
  participationId: string;
  /** Null for a participant who was embedded in the creation of the appointment. */
  customerId: string | null;
  state: 'BOOKED' | 'REQUESTED';
  /** Null if it is not stored any more. */
  name: string | null;
  email: string | null;
  mobile: string | null;
}

/**
 * The active appointments of a provider that begin on a day, in the provider's time zone. Rejects with
 * `appointment.invalid` for a date that is none, or with `provider.not_found`.
 */
export async function listDay(
  { database: { kysely } }: CalendarDependencies,
  { crmId, providerId, date, limit }: { crmId: string; providerId: string; date: string; limit: number },
): Promise<Day> {
  const provider = isUuid(providerId)
    ? await kysely
        .selectFrom('provider')
        .select('timeZone')
        .where('crmId', '=', crmId)
        .where('id', '=', providerId)
        .executeTakeFirst()
    : undefined;
  if (provider === undefined) throw new DomainError('provider.not_found');
  const period = periodOf(parseDate(date), provider.timeZone);
  const request = { crmId, providerId, ...period, limit };
  return callFunction(kysely, { name: 'read_day', request });
}

function parseDate(text: string): Temporal.PlainDate {
  try {
    return Temporal.PlainDate.from(text);
  } catch {
    throw new DomainError('appointment.invalid', {
      errors: [{ pointer: '/date', detail: 'must be a date, YYYY-MM-DD' }],
    });
  }
}
