import type {
  BookPageTimeRequest,
  ListPageTimesRequest,
  Offer,
  PageTime,
  UpdateBookingRulesRequest,
} from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import { type Calendar, type CalendarUnderTest, freshReference } from './calendar-under-test.ts';
import { newTimeslot } from './slots-under-test.ts';

/** A provider of its own with a booking page. */
export interface PageUnderTest {
  owner: { crmId: string; providerReference: string };
  providerId: string;
  /** The offer whose key is `product`. */
  offer: Offer;
}

/** What is offered is half an hour long, on two resources. */
export function newOffer(overrides: Partial<Offer> = {}): Offer {
  return {
    productReference: 'product',
    name: 'Massage',
    duration: 30,
    price: { value: 45, currency: 'EUR' },
    resources: ['anna', 'ben'].map((resourceReference) => ({ resourceReference, name: resourceReference })),
    ...overrides,
  };
}

export type RulesUnderTest = Partial<Omit<UpdateBookingRulesRequest, 'offers'>> & { offers?: Offer[] };

/** A provider of CRM one in Berlin, unless stated otherwise. */
export async function createPage(
  calendar: CalendarUnderTest,
  rules: RulesUnderTest = {},
  timeZone = 'Europe/Berlin',
): Promise<PageUnderTest> {
  const owner = { crmId: 'one', providerReference: freshReference('provider') };
  await calendar.identity.createProvider({
    crmId: owner.crmId,
    reference: owner.providerReference,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Provider',
    timeZone,
  });
  const offers = rules.offers ?? [newOffer()];
  const stored = await setRules(calendar, owner, { page: true, ...rules, offers });
  return { owner, providerId: stored.providerId, offer: offers[0]! };
}

export async function setRules(
  { bookings }: Calendar,
  owner: PageUnderTest['owner'],
  { offers, ...rules }: RulesUnderTest,
) {
  const request = { ...owner, noHorizon: false, ...rules, offers: offers && { offers } };
  return (await bookings.updateBookingRules(request)).rules!;
}

/** From 10:00 to 12:00 on the first of June 2099, a Monday, in half hours. Returns its reference. */
export async function openTimeslot(
  calendar: Calendar,
  { owner }: PageUnderTest,
  overrides: Parameters<typeof newTimeslot>[0] = {},
): Promise<string> {
  const timeslot = newTimeslot({ resourceReference: 'anna', ...overrides });
  await patiently(() => calendar.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] }));
  return timeslot.reference;
}

/** The times of the week of the first of June 2099. */
export async function listTimes(
  { pages }: Calendar,
  { providerId }: PageUnderTest,
  overrides: Partial<ListPageTimesRequest> = {},
): Promise<PageTime[]> {
  const request = { providerId, offer: 'product', date: '2099-06-01', ...overrides };
  return (await pages.listPageTimes(request)).times;
}

/** In Berlin on the first of June 2099, `10:30`. */
export function at(time: string): Date {
  return new Date(`2099-06-01T${time}:00+02:00`);
}

/** As the provider's clocks show it. */
export function timesOf(times: PageTime[]): string[] {
  return times.map(({ start, resourceReference }) => {
    const time = start!.toLocaleTimeString('de-DE', { timeZone: 'Europe/Berlin', hour: '2-digit', minute: '2-digit' });
    return `${time} ${resourceReference}`;
  });
}

/** Of a place with the price of the offer. */
export function newPageBooking(
  { providerId, offer }: PageUnderTest,
  required: Pick<BookPageTimeRequest, 'choice'>,
  overrides: Partial<BookPageTimeRequest> = {},
): BookPageTimeRequest {
  return {
    providerId,
    offer: 'product',
    resourceReference: 'anna',
    start: at('10:00'),
    price: offer.price,
    name: 'Ada Lovelace',
    email: 'ada@example.com',
    language: 'en',
    stepUp: false,
    ...required,
    ...overrides,
  };
}

export function choose(
  { pages }: Calendar,
  { providerId }: PageUnderTest,
  time: string,
  others: { resourceReference?: string; choice?: string } = {},
) {
  return pages.choosePageTime({ providerId, offer: 'product', start: at(time), ...others });
}

/** Of a provider, in the order in which they were made. */
export function participationsOf({ database }: CalendarUnderTest, { owner }: PageUnderTest) {
  return database.kysely
    .selectFrom('participation')
    .innerJoin('appointment', (join) =>
      join
        .onRef('appointment.crmId', '=', 'participation.crmId')
        .onRef('appointment.id', '=', 'participation.appointmentId'),
    )
    .innerJoin('provider', (join) =>
      join.onRef('provider.crmId', '=', 'appointment.crmId').onRef('provider.id', '=', 'appointment.providerId'),
    )
    .select(['participation.reference', 'participation.customerId', 'participation.state', 'participation.note'])
    .where('provider.reference', '=', owner.providerReference)
    .orderBy('participation.id')
    .execute();
}
