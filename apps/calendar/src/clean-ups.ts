import type { CleanUp } from '@scheduling/postgres';
import type { CalendarSchema } from './db/schema.ts';
import type { CalendarDependencies } from './dependencies.ts';
import { anonymiseOldParticipations } from './participation/anonymise-old-participations.ts';

const hourMs = 60 * 60 * 1_000;

/**
 * What calendar removes by itself. Expired reservations have a loop of their own (`start-reservation-sweeper.ts`),
 * because they must be gone within seconds.
 */
export function calendarCleanUps(
  dependencies: Pick<CalendarDependencies, 'identity'>,
  anonymiseAfterDays: number,
): CleanUp<CalendarSchema>[] {
  const remove = (database: CalendarDependencies['database'], limit: number): Promise<number> =>
    anonymiseOldParticipations({ ...dependencies, database, anonymiseAfterDays }, limit);
  return [{ name: 'the anonymisation of old participations', remove, everyMs: hourMs, batch: 500 }];
}
