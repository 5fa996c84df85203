import type { CalendarDependencies } from '../dependencies.ts';
import { readWithRememberedProvider } from '../provider/remembered-providers.ts';
import { findPart, type TimeslotsQuery } from './list-timeslots-part.ts';
import { readParts } from './read-part.ts';
import type { TimeslotRecord } from './timeslot.ts';

/**
 * The timeslots of a resource that overlap a period, by start (interface 4.1), all at once: for a gateway of the
 * previous version, which does not ask for parts. Rejects with `timeslot.invalid` or `provider.not_found`.
 */
export async function listTimeslots(
  dependencies: CalendarDependencies,
  query: TimeslotsQuery,
): Promise<{ timeslots: TimeslotRecord[]; nextCursor: string | undefined }> {
  return readWithRememberedProvider(dependencies, query, async (provider) => {
    const { scope, start, nextCursor } = await findPart(dependencies, query, provider);
    const timeslots = await readParts(dependencies.database.kysely, scope, start);
    return timeslots === 'provider_changed' ? timeslots : { timeslots, nextCursor };
  });
}
