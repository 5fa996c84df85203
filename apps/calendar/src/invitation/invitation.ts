import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { CalendarSchema, InvitationTable } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

export type Invitation = Selectable<InvitationTable> & {
  /** How many bookings and requests were made by it that still stand. */
  booked: number;
  /** Whether too many were made by it within a day, of which some were cancelled (book-by-invitation.sql). */
  isLimited: boolean;
};

/** An invitation as its CRM sees it. */
export interface IssuedInvitation extends Invitation {
  /** Of the link, as long as the customer has the present address. */
  token: string;
}

/** Those that have not expired by the CRM's clock. */
export function selectInvitations(db: Kysely<CalendarSchema>, crmId: string) {
  return db
    .selectFrom('invitation')
    .selectAll()
    .select([
      sql<number>`anonymised + (
        SELECT count(*) FROM invitation_booking
          JOIN participation ON participation.crm_id = invitation_booking.crm_id AND participation.id = participation_id
         WHERE invitation_booking.crm_id = invitation.crm_id AND invitation_id = invitation.id AND participation.state IN ('REQUESTED', 'BOOKED'))`.as(
        'booked',
      ),
      sql<boolean>`2 * bookings <= (
        SELECT count(*) FROM invitation_booking
         WHERE invitation_booking.crm_id = invitation.crm_id AND invitation_id = invitation.id
           AND uuid_extract_timestamp(participation_id) > clock_timestamp() - interval '24 hours')`.as('isLimited'),
    ])
    .where('crmId', '=', crmId)
    .where('expiresAt', '>', sql<Date>`scheduling_now(${crmId})`);
}

/** Rejects with `invitation.not_found` if it was deleted, or has expired. */
export async function requireInvitation(
  db: Kysely<CalendarSchema>,
  crmId: string,
  invitationId: string,
): Promise<Invitation> {
  const found = await findInvitation(db, crmId, invitationId);
  if (found === undefined) throw new DomainError('invitation.not_found');
  return found;
}

export async function findInvitation(
  db: Kysely<CalendarSchema>,
  crmId: string,
  invitationId: string,
): Promise<Invitation | undefined> {
  return isUuid(invitationId)
    ? selectInvitations(db, crmId).where('id', '=', invitationId).executeTakeFirst()
    : undefined;
}

/** @param email of the customer, at present */
export function withToken(
  { links }: CalendarDependencies,
  invitation: Invitation,
  email: string | undefined,
): IssuedInvitation {
  const { crmId, id: invitationId } = invitation;
  return { ...invitation, token: links.issue({ purpose: 'invite', crmId, invitationId }, email) };
}
