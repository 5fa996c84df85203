import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { CalendarSchema, InvitationTable } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

export type Invitation = Selectable<InvitationTable> & { use: InvitationUse };

/** See use_of_invitation in book-by-invitation.sql. */
interface InvitationUse {
  /** How many bookings and requests were made by it that still stand. */
  booked: number;
  /** Whether too many were made by it within a day, of which some were cancelled. */
  isLimited: boolean;
}

/** An invitation as its CRM sees it. */
export interface IssuedInvitation extends Invitation, InvitationUse {
  /** Of the link, as long as the customer has the present address. */
  token: string;
}

/** Those that have not expired by the CRM's clock. */
export function unexpiredInvitations(db: Kysely<CalendarSchema>, crmId: string) {
  return db
    .selectFrom('invitation')
    .where('crmId', '=', crmId)
    .where('expiresAt', '>', sql<Date>`scheduling_now(${crmId})`);
}

export function selectInvitations(db: Kysely<CalendarSchema>, crmId: string) {
  const use = sql<InvitationUse>`use_of_invitation(jsonb_build_object('crmId', crm_id, 'id', id))`;
  return unexpiredInvitations(db, crmId).selectAll().select(use.as('use'));
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
  return { ...invitation, ...invitation.use, token: links.issue({ purpose: 'invite', crmId, invitationId }, email) };
}
