import type { Random } from '@scheduling/testing/random';
import type { Journal } from './journal.ts';
import type { Customer, Participation, Provider, User } from './model.ts';

/**
 * A client, which does one thing after the other. What it has made, nobody else changes, except by the update or the
 * end of an appointment.
 */
export interface Worker {
  random: Random;
  journal: Journal;
  provider: Provider;
  customers: Customer[];
  participations: Participation[];
  users: User[];
  /** References that customers of this worker have had, and nobody has now. */
  freeReferences: string[];
}
