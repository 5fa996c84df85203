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

const weekdays = ['1', '2', '3', '4', '5'] as const;
/** In the provider's time zone. Jonas has 15 minutes after each appointment to change the linen. */
const openingHours = [
  { resource: ida, weekly: [onWeekdays('09:00', '12:00'), onWeekdays('13:00', '17:00')] },
  { resource: jonas, weekly: [onWeekdays('10:00', '13:00', 15), onWeekdays('14:00', '19:00', 15)] },
];

/**
 * Ensures that the demo CRM has a provider with a booking page and opening hours. What a developer has changed is left
 * as it is. Returns the address of the page; null if it was switched off.
 */
export async function ensureDemoPage(client: Client): Promise<string | null> {
  await createProvider(client);
  const [pageUrl] = await Promise.all([switchOn(client), ...openingHours.map((hours) => open(client, hours))]);
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

function onWeekdays(from: string, to: string, bufferAfter = 0) {
  return {
    weekdays: [...weekdays],
    from,
    to,
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    bufferAfter,
    address: { street: 'Lindenstraße', number: '1', zip: '10969', city: 'Berlin', countryCode: 'DE' },
  };
}

async function open(client: Client, { resource, weekly }: (typeof openingHours)[number]): Promise<void> {
  const path = '/provider/{providerRef}/resource/{resourceRef}/hours';
  const resourceParams = { path: { ...params.path, resourceRef: resource.resourceReference } };
  try {
    await client.GET(path, { params: resourceParams });
  } catch (error) {
    if (!(error instanceof ProblemError && error.code === 'hours.not_found')) throw error;
    await client.PUT(path, { params: resourceParams, body: { weekly } });
  }
}
