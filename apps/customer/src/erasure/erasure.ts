import type { Selectable } from 'kysely';
import type { ErasureTable } from '../db/schema.ts';

export type ErasureRow = Selectable<ErasureTable>;

/** The services that must confirm before an erasure is complete. */
export const confirmingServices = ['calendar', 'notification'] as const;

/** How long the address of a deleted person may be kept for the last mail (interface 4.4), in minutes. */
export const noticeMinutes = 10;
