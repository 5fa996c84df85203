import type { ProviderRecipient } from '@scheduling/contracts/identity/v1';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import type { Location, ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { DecisionLink } from '../person/link-token.ts';

/** A request as those see it who decide for its provider. */
export interface RequestedBooking extends RequestedBookingRow {
  crmId: string;
  /** Whose link it is. */
  recipient: ProviderRecipient;
  /** By whose link it was decided; null if it was not, or if that is no longer known. */
  decidedByName: string | null;
}

/** See read-requested-booking.sql. Times are ISO 8601 texts. */
export interface RequestedBookingRow {
  participationId: string;
  state: ParticipationState;
  /** Null for a participant embedded in the creation of the appointment, whose data is here. */
  customerId: string | null;
  name: string | null;
  email: string | null;
  mobile: string | null;
  note: string | null;
  message: string | null;
  providerId: string;
  providerReference: string;
  timeZone: string;
  appointmentReference: string;
  description: string | null;
  startsAt: string;
  endsAt: string;
  address: Location | null;
  priceValue: number | null;
  priceCurrency: string | null;
  capacity: number;
  /** Without reservations that have expired. */
  taken: number;
  /** How many others ask for the same appointment. */
  others: number;
  /** By the CRM's clock. */
  now: string;
  /** Identifies what the appointment says. */
  shown: string;
  /** Null unless it was decided by a link, as are the next two. */
  confirmed: boolean | null;
  decidedBy: string | null;
  decidedAt: string | null;
}

/**
 * The request of a token, with its person and its recipient as they are at this moment. Rejects with `link.not_found`
 * for every token that does not work, whatever the reason, and with `service.unavailable` if identity or the customer
 * service does not answer.
 */
export async function requireRequestedBooking(
  dependencies: CalendarDependencies,
  token: string,
): Promise<RequestedBooking> {
  const link = dependencies.links.read(token);
  if (link?.purpose !== 'decide') throw new DomainError('link.not_found');
  const { crmId, recipientId } = link;
  const row = await readRequestedBooking(dependencies, link);
  if (row === undefined) throw new DomainError('link.not_found');
  const [recipient, person] = await Promise.all([
    findRecipient(dependencies, row, { crmId, recipientId }),
    findPerson(dependencies, crmId, row),
  ]);
  if (recipient === undefined || person === undefined || !dependencies.links.isIssued(token, recipient.email))
    throw new DomainError('link.not_found');
  return { ...row, ...person, crmId, recipient, decidedByName: await findDecider(dependencies, crmId, row) };
}

/** The same request as it is now. Rejects with `link.not_found`. */
export async function readRequestAgain(
  dependencies: CalendarDependencies,
  request: RequestedBooking,
): Promise<RequestedBooking> {
  const { crmId, recipient, name, email, mobile, note } = request;
  const row = await readRequestedBooking(dependencies, request);
  if (row === undefined) throw new DomainError('link.not_found');
  const decidedByName = await findDecider(dependencies, crmId, row);
  return { ...row, crmId, recipient, name, email, mobile, note, decidedByName };
}

async function readRequestedBooking(
  { database }: CalendarDependencies,
  { crmId, participationId }: Pick<DecisionLink, 'crmId' | 'participationId'>,
): Promise<RequestedBookingRow | undefined> {
  const call = { name: 'read_requested_booking', request: { crmId, participationId } };
  return (await callFunction<RequestedBookingRow | null>(database.kysely, call)) ?? undefined;
}

async function findRecipient(
  { identity }: CalendarDependencies,
  { providerId }: RequestedBookingRow,
  { crmId, recipientId }: { crmId: string; recipientId: string },
): Promise<ProviderRecipient | undefined> {
  const answer = await undefinedIfNotFound(identity.getProviderRecipient({ crmId, providerId, recipientId }));
  return answer?.recipient;
}

type Person = Pick<RequestedBookingRow, 'name' | 'email' | 'mobile' | 'note'>;

/** A customer's data is that of the customer service. Undefined for somebody who has been erased. */
async function findPerson(
  { customers }: CalendarDependencies,
  crmId: string,
  { customerId, name, email, mobile, note }: RequestedBookingRow,
): Promise<Person | undefined> {
  if (customerId === null) return { name, email, mobile, note };
  const person = await undefinedIfNotFound(customers.getRecipient({ crmId, customerId }));
  return (
    person && {
      name: person.name,
      email: person.email ?? null,
      mobile: person.mobile ?? null,
      // What they wrote about this request, or else what the CRM has noted about them.
      note: note ?? person.note ?? null,
    }
  );
}

async function findDecider(
  dependencies: CalendarDependencies,
  crmId: string,
  row: RequestedBookingRow,
): Promise<string | null> {
  if (row.decidedBy === null) return null;
  const recipient = await findRecipient(dependencies, row, { crmId, recipientId: row.decidedBy });
  return recipient?.name ?? null;
}
