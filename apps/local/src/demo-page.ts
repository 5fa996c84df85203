import { type Client, ProblemError } from '@scheduling/client';

/** Of the user, the account and the provider. */
const reference = 'linden@demo';
const params = { path: { providerRef: reference } };

const ida = { resourceReference: 'ida@demo', name: 'Ida Sommer' };
const jonas = { resourceReference: 'jonas@demo', name: 'Jonas Falk' };
const offers = [
  {
    productReference: 'massage@demo',
    name: 'Massage',
    duration: 60,
    price: { value: 75, currency: 'EUR' as const },
    resources: [ida, jonas],
  },
  {
    productReference: 'express@demo',
    name: 'Express Massage',
    duration: 30,
    price: { value: 42, currency: 'EUR' as const },
    resources: [ida, jonas],
  },
  {
    productReference: 'coaching@demo',
    name: 'Yoga Coaching',
    duration: 90,
    price: { value: 110, currency: 'EUR' as const },
    resources: [ida],
  },
];

/** In the provider's time zone, on weekdays. */
const openingHours = [
  { resource: ida, hours: ['09:00', '12:00'] },
  { resource: ida, hours: ['13:00', '17:00'] },
  { resource: jonas, hours: ['10:00', '13:00'] },
  { resource: jonas, hours: ['14:00', '19:00'] },
] as const;
const openDays = 28;

/**
 * Ensures that the demo CRM has a provider with a booking page, that can be booked for four weeks from `today`. What a
 * developer has changed is left as it is. Returns the address of the page; null if it was switched off.
 */
export async function ensureDemoPage(client: Client, today: Temporal.PlainDate): Promise<string | null> {
  await createProvider(client);
  const days = Array.from({ length: openDays }, (_, day) => today.add({ days: day }));
  const [pageUrl] = await Promise.all([
    switchOn(client),
    ...days.filter(({ dayOfWeek }) => dayOfWeek <= 5).map((date) => open(client, date)),
  ]);
  return pageUrl;
}

async function createProvider(client: Client): Promise<void> {
  const owner = { reference, email: 'linden@example.com', username: 'linden', firstName: 'Ida', lastName: 'Sommer' };
  await client.POST('/user', { body: owner });
  const account = { ownerReference: reference, accountReference: reference };
  await client.POST('/account', { body: { ...account, branch: 'sports-and-leisure' } });
  await client.POST('/provider', {
    body: {
      ...account,
      reference,
      name: 'Studio Linden',
      email: 'linden@example.com',
      phone: '+49 30 5550100',
      impressum: 'Studio Linden, Lindenstraße 1, 10969 Berlin',
      timeZone: 'Europe/Berlin',
    },
  });
}

async function switchOn(client: Client): Promise<string | null> {
  const path = '/provider/{providerRef}/booking-rules';
  const { data: present } = await client.GET(path, { params });
  if (present.bookingRules.offers.length > 0) return present.bookingRules.pageUrl;
  const body = { page: true, offers, askMobile: 'OPTIONAL' as const, minimumNotice: 60, changeNotice: 1_440 };
  const { data } = await client.PUT(path, { params, body });
  return data.bookingRules.pageUrl;
}

/** A day that was changed since it was opened is rejected, and stays as it is. */
async function open(client: Client, date: Temporal.PlainDate): Promise<void> {
  const timeslots = openingHours.map(({ resource: { resourceReference }, hours: [from, to] }) => ({
    reference: `${date.toString()}-${from.slice(0, 2)}-${resourceReference}`,
    resourceReference,
    start: `${date.toString()}T${from}`,
    end: `${date.toString()}T${to}`,
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    address: { street: 'Lindenstraße', number: '1', zip: '10969', city: 'Berlin', countryCode: 'DE' },
    state: 'BOOKABLE' as const,
  }));
  try {
    await client.POST('/provider/{providerRef}/timeslots', { params, body: { timeslots } });
  } catch (error) {
    if (!(error instanceof ProblemError && error.status === 409)) throw error;
  }
}
