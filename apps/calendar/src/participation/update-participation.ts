import { originJson } from '@scheduling/messaging';
import type { ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { readParticipation } from './read-participation.ts';
import { settle, type Settled } from './settle.ts';

export interface ParticipationUpdate {
  crmId: string;
  providerReference: string;
  participationReference: string;
  /** Absent: the present one. */
  state?: ParticipationState | undefined;
  message?: string | undefined;
  /** Null clears it. */
  metadata?: Record<string, string> | null | undefined;
  /** Whether the person did not come. */
  noShow?: boolean | undefined;
  ignoreCapacity: boolean;
  sendMails: boolean;
}

/**
 * Changes the state of a participation, or what the CRM notes of it (interface 4.3); see change-state.sql. Rejects with
 * `provider.not_found`, `participation.not_found`, `participation.state_unsupported`, `participation.move_not_allowed`,
 * `participation.capacity_exhausted`, `appointment.cancelled`, `booking.customer_missing`, `participation.not_booked`,
 * `participation.not_started`, `participation.anonymous` or `participation.busy`.
 */
export function updateParticipation(
  dependencies: CalendarDependencies,
  { crmId, providerReference, participationReference, ...change }: ParticipationUpdate,
): Promise<Settled<{ participation: string }>> {
  const db = dependencies.database.kysely;
  return settle(dependencies, {
    provider: { crmId, providerReference },
    call: async ({ id: providerId }) => {
      const present = await readParticipation(db, { crmId, providerId, reference: participationReference });
      const request = { ...change, participationReference, participationId: present?.id, origin: originJson() };
      return { name: 'update_participation', request, locks: present?.appointmentReference ?? '' };
    },
    read: (participationId) => readParticipation(db, { crmId, participationId }),
    notFound: 'participation.not_found',
    busy: 'participation.busy',
  });
}
