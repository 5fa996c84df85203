import { addressKey, nameUuid } from '@scheduling/runtime';
import { fetchIfKnown, findCustomerId, type NamedCustomer } from '../customer/customer-copy.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { BookingPage } from './booking-page.ts';

/** Who books on a page, as they say. */
export interface PagePerson {
  name: string;
  email: string;
  mobile?: string | undefined;
  /** Language tag, of the page. */
  language: string;
}

/**
 * The customer for whom a page books. Whoever is invited is known. Anybody else is the same as before for the same
 * provider, address, name and mobile number, otherwise a new one. The reference is made of these, so that nobody is found
 * who was not made by a page; and if the CRM has given its customer other data since, that is somebody else.
 */
export async function nameCustomer(
  dependencies: CalendarDependencies,
  page: BookingPage,
  { choice, ...person }: PagePerson & { choice: string },
): Promise<NamedCustomer> {
  if (page.invited !== undefined) return { customerReference: page.invited.customerReference };
  const { name: userName, email, mobile, language } = person;
  const reference = referenceOf(page, JSON.stringify(contentOf(person)));
  const known = await findKnown(dependencies, page, reference);
  const isAnother = known !== undefined && !isSame(known, person);
  const customerReference = isAnother ? referenceOf(page, `${reference} ${choice}`) : reference;
  return { customerReference, userName, email, mobile, language };
}

/** Whether a booking is that of whoever is invited or, if nobody is, of a person who says who they are. */
export async function isBookingOf(
  { database }: CalendarDependencies,
  { crmId, invited }: BookingPage,
  participationId: string,
  person: Omit<PagePerson, 'language'>,
): Promise<boolean> {
  const copy = await database.kysely
    .selectFrom('participation')
    .innerJoin('customer', (join) =>
      join.onRef('customer.crmId', '=', 'participation.crmId').onRef('customer.id', '=', 'participation.customerId'),
    )
    .select(['customer.id', 'customer.userName', 'customer.email', 'customer.mobile'])
    .where('participation.crmId', '=', crmId)
    .where('participation.id', '=', participationId)
    .executeTakeFirst();
  if (copy === undefined) return false;
  return invited === undefined ? isSame(toPerson(copy), person) : copy.id === invited.customerId;
}

function isSame(one: Omit<PagePerson, 'language'>, other: Omit<PagePerson, 'language'>): boolean {
  return JSON.stringify(contentOf(one)) === JSON.stringify(contentOf(other));
}

function toPerson(copy: {
  userName: string | null;
  email: string | null;
  mobile: string | null;
}): Omit<PagePerson, 'language'> {
  return { name: copy.userName ?? '', email: copy.email ?? '', mobile: copy.mobile ?? undefined };
}

function referenceOf({ providerId }: BookingPage, name: string): string {
  return `page-${nameUuid(providerId, name)}`;
}

/** What makes somebody the same person, without what is written in several ways. */
function contentOf({ name, email, mobile }: Omit<PagePerson, 'language'>): unknown[] {
  return [addressKey(email), name.normalize('NFC').replaceAll(/\s+/gu, ' ').trim(), mobile?.replaceAll(/[^+\d]/g, '')];
}

async function findKnown(
  dependencies: CalendarDependencies,
  { crmId, providerId, providerReference }: BookingPage,
  reference: string,
): Promise<Omit<PagePerson, 'language'> | undefined> {
  const db = dependencies.database.kysely;
  const id =
    (await findCustomerId(db, { crmId, providerId, reference })) ??
    (await fetchIfKnown(dependencies, { crmId, providerReference }, reference));
  if (id === undefined) return undefined;
  const copy = await db
    .selectFrom('customer')
    .select(['userName', 'email', 'mobile'])
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .executeTakeFirst();
  return copy && toPerson(copy);
}
