import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { type CustomerReference, fetchCustomer } from '../customer/customer-copy.ts';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import {
  type Invitation,
  type IssuedInvitation,
  requireInvitation,
  unexpiredInvitations,
  withToken,
} from './invitation.ts';

export interface NewInvitation extends CustomerReference {
  /** Of an offer. */
  productReference: string;
  /** 1 to 100. */
  bookings: number;
  /** See {@link parseDateTime}. */
  expiresAt: string;
}

const maxBookings = 100;
const maxDays = 366;
/** Of a customer, that have not expired. */
const maxInvitations = 100;

/**
 * Invites a customer to book a product on the provider's page. Rejects with `invitation.invalid`, `invitation.no_page`,
 * `invitation.limit_reached`, `provider.not_found`, `customer.not_found`, or for a repeated request
 * `invitation.not_found`.
 */
export async function createInvitation(
  dependencies: CalendarDependencies,
  request: NewInvitation,
): Promise<IssuedInvitation> {
  const { crmId, productReference, bookings } = request;
  const { id: providerId, timeZone } = await requireProvider(dependencies, request);
  const expiresAt = parseDateTime(request.expiresAt, timeZone);
  const { id: customerId, customerReference, email } = await fetchCustomer(dependencies, request);
  const invited = { crmId, providerId, customerId, productReference, bookings, expiresAt };
  const invitation = await transactOnce(dependencies.database, crmId, {
    work: (tx) => insertInvitation(tx, { ...invited, customerReference }),
    // The key goes with the customer.
    keep: ({ id }) => ({ resourceIds: [id, customerId], created: true }),
    replay: (tx, { resourceIds: [id] }) => requireInvitation(tx, crmId, id!),
  });
  return withToken(dependencies, invitation, email);
}

type InvitationContent = Pick<
  Invitation,
  'crmId' | 'providerId' | 'customerId' | 'productReference' | 'bookings' | 'expiresAt'
>;

async function insertInvitation(
  tx: Transaction<CalendarSchema>,
  { customerReference, ...content }: InvitationContent & { customerReference: string },
): Promise<Invitation> {
  const { crmId, customerId } = content;
  await checkContent(tx, content);
  // An erasure, which locks the customer FOR UPDATE, comes entirely before or after.
  const customer = await tx
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', customerId)
    .where('reference', '=', customerReference)
    .forKeyShare()
    .executeTakeFirst();
  if (customer === undefined) throw new DomainError('customer.not_found');
  // They are counted below.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`invitations ${customerId}`}, 0))`.execute(tx);
  const { count } = await unexpiredInvitations(tx, crmId)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('customerId', '=', customerId)
    .executeTakeFirstOrThrow();
  if (count >= maxInvitations) throw new DomainError('invitation.limit_reached');
  const row = await tx
    .insertInto('invitation')
    .values({ ...content, id: randomUUIDv7(), createdAt: sql<Date>`scheduling_now(${crmId})` })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { ...row, use: { booked: 0, isLimited: false } };
}

async function checkContent(
  tx: Transaction<CalendarSchema>,
  { crmId, providerId, productReference, bookings, expiresAt }: InvitationContent,
): Promise<void> {
  const rules = await tx
    .selectFrom('bookingRules')
    .select(['page', 'offers'])
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .executeTakeFirst();
  const offers = rules?.offers ?? [];
  const isWithin = await tx
    .selectNoFrom(
      sql<boolean>`${expiresAt} > scheduling_now(${crmId}) AND ${expiresAt} <= scheduling_now(${crmId}) + make_interval(days => ${maxDays})`.as(
        'future',
      ),
    )
    .executeTakeFirstOrThrow();
  const errors = collectFieldErrors();
  if (!offers.some((offer) => offer.productReference === productReference))
    errors.add('/productReference', 'must be the product of an offer in the booking rules');
  if (!(bookings >= 1 && bookings <= maxBookings)) errors.add('/bookings', `must be between 1 and ${maxBookings}`);
  if (!isWithin.future) errors.add('/expiresAt', `must be in the future, and at most ${maxDays} days ahead`);
  errors.throwIfAny('invitation.invalid');
  if (rules?.page !== true) throw new DomainError('invitation.no_page');
}
