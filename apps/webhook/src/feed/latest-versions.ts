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

export type Subject = Pick<LatestVersion, 'crmId' | 'subjectId'>;

/** Of those that are known. */
export async function readLatestVersions(
  { kysely }: Pick<Database<WebhookSchema>, 'kysely'>,
  subjects: Subject[],
): Promise<LatestVersion[]> {
  if (subjects.length === 0) return [];
  return readFunction<LatestVersion>(kysely, { name: 'read_latest_versions', request: { subjects } });
}

/** The subjects of all events, without repetitions. */
export function subjectsOf<Event extends ArrivedEvent>(
  events: Event[],
  idsOf: (event: Event) => (string | null)[],
): Subject[] {
  const subjects = events.flatMap((event) =>
    idsOf(event).flatMap((subjectId) => (subjectId === null ? [] : { crmId: event.crmId, subjectId })),
  );
  return [...new Map(subjects.map((subject) => [`${subject.subjectId} ${subject.crmId}`, subject])).values()];
}

/** The last number of each of their series. */
export function numbersOf(
  subjects: (Subject & { version: number | null; ordinal: number | null })[],
): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const { crmId, subjectId, version, ordinal } of subjects) {
    if (version !== null) numbers.set(versionsOf(crmId, subjectId), version);
    if (ordinal !== null) numbers.set(ordinalsOf(crmId, subjectId), ordinal);
  }
  return numbers;
}
