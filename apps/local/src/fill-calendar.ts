import { type Client, ProblemError } from '@scheduling/client';

export interface Filled {
  /** Their references. */
  providers: string[];
  bookings: number;
  /** Slots that were no longer free, or no longer in the future. */
  rejected: number;
}

interface Practice {
  name: string;
  timeZone: string;
  language: string;
  resources: string[];
  /** Minutes each. */
  raster: number;
  products: string[];
}

const practices: Practice[] = [
  {
    name: 'Praxis am Park',
    timeZone: 'Europe/Berlin',
    language: 'de',
    resources: ['Behandlungsraum 1', 'Behandlungsraum 2'],
    raster: 30,
    products: ['Erstgespräch', 'Kontrolle', 'Massage'],
  },
  {
    name: 'Studio Blum',
    timeZone: 'Europe/Zurich',
    language: 'en',
    resources: ['Hall', 'Garden room'],
    raster: 60,
    products: ['Yoga', 'Pilates'],
  },
];
const people = [
  'Grace Hopper',
  'Jürgen Weiß',
  'Zoë Kravitz',
  'Nguyễn Thị Minh',
  'محمد علي',
  "Siobhán O'Brien",
  'María José García-López',
  '田中 花子',
  'Ada Kundin',
  'Oluwaseun Adébáyò',
];
/** Of the bookings, in turn. */
const states = ['BOOKED', 'BOOKED', 'REQUESTED', 'BOOKED', 'RESERVED', 'BOOKED'] as const;
const openDays = 14;

/**
 * Fills the calendar of a CRM with two providers, two weeks of timeslots from `today`, a course, and bookings in every
 * state, always the same ones for the same day. What exists already is left as it is.
 */
export async function fillCalendar(client: Client, today: Temporal.PlainDate): Promise<Filled> {
  const filled: Filled = { providers: [], bookings: 0, rejected: 0 };
  for (const practice of practices) {
    const name = practice.name.toLowerCase().replaceAll(' ', '-');
    const providerRef = `${name}@seed`;
    await createProvider(client, { name, providerRef, practice });
    filled.providers.push(providerRef);
    await createCourse(client, { providerRef, practice, today });
    for (let day = 0; day < openDays; day += 1) {
      const date = today.add({ days: day });
      if (date.dayOfWeek > 5) continue;
      const timeslots = await openDay(client, { providerRef, practice, date });
      for (const [index, timeslotReference] of timeslots.entries())
        await bookDay(client, { providerRef, practice, date, timeslotReference, offset: day * 3 + index * 5 }, filled);
    }
  }
  return filled;
}

async function createProvider(
  client: Client,
  { name, providerRef, practice }: { name: string; providerRef: string; practice: Practice },
): Promise<void> {
  const [ownerReference, accountReference] = [`owner-${name}@seed`, `account-${name}@seed`];
  const email = `${name}@example.com`;
  await client.POST('/user', {
    body: { reference: ownerReference, email, username: name, firstName: 'Mara', lastName: 'Blum' },
  });
  await client.POST('/account', {
    body: { ownerReference, accountReference, branch: 'misc', invoiceCompanyName: practice.name },
  });
  const { timeZone, language } = practice;
  await client.POST('/provider', {
    body: { reference: providerRef, ownerReference, accountReference, name: practice.name, email, timeZone, language },
  });
}

/** Every Monday evening, with twelve seats. */
async function createCourse(
  client: Client,
  { providerRef, practice, today }: { providerRef: string; practice: Practice; today: Temporal.PlainDate },
): Promise<void> {
  const [resourceReference, productName] = [practice.resources[0]!, practice.products[0]!];
  await client.POST('/provider/{providerRef}/appointments', {
    params: { path: { providerRef } },
    headers: { 'Idempotency-Key': `course-${providerRef}-${today.toString()}` },
    body: {
      from: `${today.toString()}T18:00`,
      to: `${today.toString()}T19:00`,
      series_data: {
        from: `${today.toString()}T00:00`,
        to: `${today.add({ days: openDays }).toString()}T00:00`,
        raster: 60,
        weekdays: ['1'],
      },
      resourceReference,
      productReference: 'course@seed',
      productName: `${productName} (course)`,
      capacity: 12,
      acceptBookings: true,
    },
  });
}

/** From 9 to 17 o'clock in every resource; the last one cannot be booked on Wednesdays. Returns the bookable timeslots. */
async function openDay(
  client: Client,
  { providerRef, practice, date }: { providerRef: string; practice: Practice; date: Temporal.PlainDate },
): Promise<string[]> {
  const timeslots = practice.resources.map((resourceReference, index) => ({
    reference: `${date.toString()}-${index + 1}-${providerRef}`,
    resourceReference,
    start: `${date.toString()}T09:00`,
    end: `${date.toString()}T17:00`,
    raster: practice.raster,
    defaultCapacity: index + 1,
    defaultAcceptBookings: true,
    address: { street: 'Beispielstraße', number: '1', zip: '10115', city: 'Berlin', countryCode: 'DE' },
    state: date.dayOfWeek === 3 && index > 0 ? ('CREATED' as const) : ('BOOKABLE' as const),
  }));
  const params = { path: { providerRef } };
  await client.POST('/provider/{providerRef}/timeslots', { params, body: { timeslots } });
  return timeslots.filter(({ state }) => state === 'BOOKABLE').map(({ reference }) => reference);
}

interface Day {
  providerRef: string;
  practice: Practice;
  date: Temporal.PlainDate;
  timeslotReference: string;
  /** Makes the days differ. */
  offset: number;
}

async function bookDay(client: Client, day: Day, filled: Filled): Promise<void> {
  const { providerRef, practice, date, timeslotReference, offset } = day;
  for (let index = 0; index < 4; index += 1) {
    const number = offset + index;
    const [userName, state] = [people[number % people.length]!, states[number % states.length]!];
    const reference = `booking-${index + 1}-${timeslotReference}`;
    const params = { path: { providerRef } };
    const customer = {
      customerReference: `customer-${number % people.length}-${providerRef}`,
      userName,
      email: `customer-${number % people.length}@example.com`,
      language: practice.language,
    };
    const start = date.toPlainDateTime({ hour: 9 + index * 2 }).toString({ smallestUnit: 'minute' });
    const productName = practice.products[number % practice.products.length]!;
    const place = { timeslotReference, start, productReference: `${productName}@seed`, productName };
    try {
      await client.POST('/provider/{providerRef}/bookings', { params, body: { reference, ...place, customer, state } });
      filled.bookings += 1;
      if (number % 7 === 0) await cancel(client, providerRef, reference);
    } catch (error) {
      if (!(error instanceof ProblemError && error.status === 409)) throw error;
      filled.rejected += 1;
    }
  }
}

async function cancel(client: Client, providerRef: string, participationRef: string): Promise<void> {
  await client.POST('/provider/{providerRef}/participations/{participationRef}', {
    params: { path: { providerRef, participationRef } },
    body: { state: 'CANCELED', message: 'Leider bin ich krank.' },
  });
}
