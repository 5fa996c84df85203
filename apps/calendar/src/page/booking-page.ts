import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import { createHash } from 'node:crypto';
import type { Offer } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { BookingRules } from '../slot/booking-rules.ts';
import type { Target } from '../slot/resource-times.ts';

/** The booking page of a provider, as its rules are now. */
export interface BookingPage extends Pick<
  BookingRules,
  'confirmation' | 'askMobile' | 'embedOn' | 'minimumNotice' | 'maxPerPerson' | 'selfService' | 'verifyEmail'
> {
  crmId: string;
  providerId: string;
  providerReference: string;
  timeZone: string;
  /** By the CRM's clock. */
  now: Date;
  offers: PageOffer[];
}

export interface PageOffer extends Offer {
  /** By which requests name it. */
  key: string;
}

/** Rejects with `booking_page.not_found` for a provider that has no page, or does not exist. */
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
    .select('offers')
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
