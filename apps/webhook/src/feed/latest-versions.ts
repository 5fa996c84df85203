import { type Database, readFunction } from '@scheduling/postgres';
import type { WebhookSchema } from '../db/schema.ts';
import { type ArrivedEvent, ordinalsOf, versionsOf } from './order-events.ts';

/** The last numbers of a subject in the feed, 0 if there are none: its version, and for an appointment its ordinal. */
export interface LatestVersion {
  crmId: string;
  subjectId: string;
  version: number;
  ordinal: number;
}

/** Of what the events are about, and of what they name. */
export async function readLatestVersions(
  { kysely }: Pick<Database<WebhookSchema>, 'kysely'>,
  events: ArrivedEvent[],
): Promise<LatestVersion[]> {
  const subjects = subjectsOf(events);
  if (subjects.length === 0) return [];
  return readFunction<LatestVersion>(kysely, { name: 'read_latest_versions', request: { subjects } });
}

/** What the events are about, and what they name. */
export function subjectsOf(events: ArrivedEvent[]): Pick<LatestVersion, 'crmId' | 'subjectId'>[] {
  const subjects = events.flatMap((event) =>
    [event.subjectId, event.appointmentId, event.previousAppointmentId, event.customerId].flatMap((subjectId) =>
      subjectId === null ? [] : { crmId: event.crmId, subjectId },
    ),
  );
  return [...new Map(subjects.map((subject) => [`${subject.subjectId} ${subject.crmId}`, subject])).values()];
}

/** The last number of each of their series. */
export function numbersOf(
  subjects: (Pick<LatestVersion, 'crmId' | 'subjectId'> & { version: number | null; ordinal: number | null })[],
): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const { crmId, subjectId, version, ordinal } of subjects) {
    if (version !== null) numbers.set(versionsOf(crmId, subjectId), version);
    if (ordinal !== null) numbers.set(ordinalsOf(crmId, subjectId), ordinal);
  }
  return numbers;
}
