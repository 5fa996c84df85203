import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { createHash } from 'node:crypto';
import type { Offer } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type InvitedCustomer, requireInvited } from '../invitation/invited-customer.ts';
import type { BookingRules } from '../slot/booking-rules.ts';
import type { Target } from '../slot/resource-times.ts';

/** The booking page of a provider, as its rules are now. */
export interface BookingPage extends Pick<
  BookingRules,
  'confirmation' | 'askMobile' | 'embedOn' | 'minimumNotice' | 'maxPerPerson' | 'selfService' | 'verifyEmail' | 'access'
> {
  crmId: string;
  providerId: string;
  providerReference: string;
  timeZone: string;
  /** By the CRM's clock. */
  now: Date;
  offers: PageOffer[];
  /** Whom it is for; undefined: everybody. */
  invited?: InvitedCustomer | undefined;
}

/** How a person comes to a page. */
export interface PageVisit {
  providerId: string;
  /** The token of an invitation. */
  invitation?: string | undefined;
}

export interface PageOffer extends Offer {
  /** By which requests name it. */
  key: string;
}

/**
 * The page of whoever visits it: with an invitation, that of its customer, with the offers of its product. Rejects with
 * `booking_page.not_found`, `booking_page.invited_only`, or as {@link requireInvited}.
 */
export async function openBookingPage(
  dependencies: CalendarDependencies,
  { providerId, invitation }: PageVisit,
): Promise<BookingPage> {
  const page = await requireBookingPage(dependencies, providerId);
  if (invitation !== undefined) {
    const invited = await requireInvited(dependencies, page, invitation);
    const offers = page.offers.filter(({ productReference }) => productReference === invited.productReference);
    return { ...page, offers, invited };
  }
  requirePublic(page);
  return page;
}

/** Rejects with `booking_page.invited_only`. */
export function requirePublic({ access }: BookingPage): void {
  if (access === 'INVITED') throw new DomainError('booking_page.invited_only');
}

/** What a notice of the page needs, whoever can book there. Rejects with `booking_page.not_found`. */
export async function readClosedPage(dependencies: CalendarDependencies, providerId: string): Promise<BookingPage> {
  return { ...(await requireBookingPage(dependencies, providerId)), offers: [] };
}

/**
 * The page, whoever can book there. Rejects with `booking_page.not_found` for a provider that has no page, or does not
 * exist.
 */
export async function requireBookingPage(
  { database, pageTenants }: CalendarDependencies,
  providerId: string,
): Promise<BookingPage> {
  const row = isUuid(providerId) ? await readPage(database.kysely, providerId) : undefined;
  if (row === undefined) throw new DomainError('booking_page.not_found');
  pageTenants.set(providerId, row.crmId);
  return { ...row, offers: withKeys(row.offers) };
}

function readPage(db: CalendarDependencies['database']['kysely'], providerId: string) {
  return db
    .selectFrom('provider')
    .innerJoin('bookingRules as rules', (join) =>
      join.onRef('rules.crmId', '=', 'provider.crmId').onRef('rules.providerId', '=', 'provider.id'),
    )
    .select(['provider.crmId', 'provider.id as providerId', 'provider.reference as providerReference', 'timeZone'])
    .select(['confirmation', 'askMobile', 'embedOn', 'minimumNotice', 'maxPerPerson', 'selfService', 'verifyEmail'])
    .select(['offers', 'access'])
    .select((eb) => eb.fn<Date>('scheduling_now', ['provider.crmId']).as('now'))
    .where('provider.id', '=', providerId)
    .where('page', '=', true)
    .executeTakeFirst();
}

/**
 * The key of an offer is its product reference, so that whoever knows that can write a link to it. If several offers
 * have the same, it has an addition, made of what distinguishes them: the price does not, because it may change while a
 * page is open.
 */
function withKeys(offers: Offer[]): PageOffer[] {
  const byProduct = Map.groupBy(offers, ({ productReference }) => productReference);
  return offers.map((offer) => {
    const { productReference, name, duration } = offer;
    const ofProduct = byProduct.get(productReference)!;
    if (ofProduct.length === 1) return { ...offer, key: productReference };
    const equal = ofProduct.filter((other) => other.name === name && other.duration === duration);
    const content = [name, duration, ...(equal[0] === offer ? [] : [equal.indexOf(offer)])];
    const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex');
    return { ...offer, key: `${productReference}~${digest.slice(0, 8)}` };
  });
}

/** What a person wants to book. */
export interface OfferChoice {
  /** The key of an offer. */
  offer: string;
  /** Undefined: any resource of the offer. */
  resourceReference?: string | undefined;
}

/**
 * The offer with only the resource that is chosen, if one is. Rejects with `booking_page.offer_not_found`, also if the
 * offer does not have the resource.
 */
export function requireOffer({ offers }: BookingPage, { offer: key, resourceReference }: OfferChoice): PageOffer {
  const offer = offers.find((each) => each.key === key);
  const resources = (offer?.resources ?? []).filter(
    (resource) => resourceReference === undefined || resource.resourceReference === resourceReference,
  );
  if (offer === undefined || resources.length === 0) throw new DomainError('booking_page.offer_not_found');
  return { ...offer, resources };
}

const minuteMs = 60_000;

/** How long what is offered takes, in milliseconds. */
export function lengthOf({ duration }: PageOffer): number {
  return duration * minuteMs;
}

/**
 * One for each resource of an offer: the slots with its product and its length.
 *
 * @param leaving an appointment that ends when a choice is given up
 */
export function targetsOf(page: BookingPage, offer: PageOffer, leaving?: string): Target[] {
  const { crmId, providerReference } = page;
  const { productReference, duration, resources } = offer;
  // An open appointment may be longer or shorter.
  const accepts: Target['accepts'] = ({ startsAt, endsAt }) => endsAt - startsAt === lengthOf(offer);
  return resources.map(({ resourceReference }) => ({
    crmId,
    providerReference,
    resourceReference,
    productReference,
    duration,
    leaving,
    ignoreNotice: false,
    accepts,
  }));
}
