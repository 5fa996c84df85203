import { originJson } from '@scheduling/messaging';
import { randomUUIDv7 } from 'node:crypto';
import type { ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { readParticipation } from './read-participation.ts';
import { settle, type Settled } from './settle.ts';

export interface NewParticipation {
  crmId: string;
  providerReference: string;
  reference: string;
  appointmentReference: string;
  customerReference: string;
  state: ParticipationState;
  message?: string | undefined;
  metadata?: Record<string, string> | null | undefined;
  ignoreCapacity: boolean;
  onDuplicateRaise: boolean;
  sendMails: boolean;
}

/**
 * Creates a participation, or changes the state of the one with this reference (interface 4.3); see
 * create-participation.sql. Rejects with `provider.not_found`, `appointment.not_found`, `customer.not_found`,
 * `appointment.cancelled`, `participation.capacity_exhausted`, `participation.reference_taken`,
 * `participation.state_unsupported`, `participation.move_not_allowed` or `participation.busy`.
 */
export function createParticipation(
  dependencies: CalendarDependencies,
  { crmId, providerReference, ...participation }: NewParticipation,
): Promise<Settled<{ participation: string }>> {
  const { reference, appointmentReference, customerReference } = participation;
  const request = { ...participation, id: randomUUIDv7(), origin: originJson() };
  return settle(dependencies, {
    provider: { crmId, providerReference },
    customer: { customerReference },
    references: [reference],
    call: () => ({ name: 'create_participation', request, locks: appointmentReference }),
    read: (participationId) => readParticipation(dependencies.database.kysely, { crmId, participationId }),
    notFound: 'participation.not_found',
    busy: 'participation.busy',
  });
}
