import {
  AskMobile,
  Confirmation,
  type Offer,
  TimeslotState,
  type UpdateBookingRulesRequest,
} from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { type Answer, basePath, createProvider, owner, type PageUnderTest } from './page-under-test.ts';

export interface ProviderUnderTest {
  crmId: string;
  providerReference: string;
  /** Of its booking page. */
  path: string;
}

export const [ada, bob] = ['ada', 'bob'].map((reference) => ({
  resourceReference: reference,
  name: reference === 'ada' ? 'Ada' : 'Bob',
})) as [Offer['resources'][number], Offer['resources'][number]];

export const massage: Offer = {
  productReference: 'massage',
  name: 'Massage <deep>',
  duration: 30,
  price: { value: 45, currency: 'EUR' },
  resources: [ada],
};

export const yoga: Offer = { productReference: 'yoga', name: 'Yoga', duration: 90, resources: [ada, bob] };

/** A provider of its own, with a booking page. */
export async function openPageOf(
  page: PageUnderTest,
  rules: Partial<UpdateBookingRulesRequest> & { timeZone?: string } = {},
): Promise<ProviderUnderTest> {
  const { timeZone = 'Europe/Berlin', ...given } = rules;
  const provider = { crmId: owner.crmId, providerReference: `p-${randomUUID()}` };
  await createProvider(page, provider.providerReference, timeZone);
  const { rules: set } = await patiently(() =>
    page.bookings.updateBookingRules({
      ...provider,
      noHorizon: true,
      minimumNotice: 0,
      page: true,
      confirmation: Confirmation.BOOKED,
      askMobile: AskMobile.NO,
      maxPerPerson: 100,
      offers: { offers: [massage] },
      ...given,
    }),
  );
  return { ...provider, path: `/book/${set!.providerId}` };
}

/** Changes some of its rules. */
export async function changeRules(
  page: PageUnderTest,
  { crmId, providerReference }: ProviderUnderTest,
  rules: Partial<UpdateBookingRulesRequest>,
): Promise<void> {
  await page.bookings.updateBookingRules({ crmId, providerReference, noHorizon: false, ...rules });
}

/** A resource can be booked from start to end, which are local. */
export async function offerTimes(
  page: PageUnderTest,
  { crmId, providerReference }: ProviderUnderTest,
  start: string,
  end: string,
  { resource = 'ada', raster = 30 } = {},
): Promise<string> {
  const timeslot = {
    reference: `timeslot-${randomUUID()}`,
    resourceReference: resource,
    start,
    end,
    raster,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
    address: {
      kind: { $case: 'address' as const, value: { street: 'Lange Straße', number: '1', zip: '10115', city: 'Berlin' } },
    },
  };
  await patiently(() => page.timeslots.createTimeslots({ crmId, providerReference, timeslots: [timeslot] }));
  return timeslot.reference;
}

/** The buttons of a page: what they are called, and what pressing them sends. */
export function buttonsOf(body: string): { name: string; value: string | undefined }[] {
  return [...body.matchAll(/<button(?! disabled)([^>]*)>(.*?)<\/button>/gs)].map(([, attributes, content]) => ({
    name: textOf(content!),
    value: /value="([^"]*)"/.exec(attributes!)?.[1],
  }));
}

/** What a person reads, without the marks around it. */
export function textOf(body: string): string {
  return unescape(
    body
      .replace(/<style>.*<\/style>/s, '')
      .replaceAll(/<[^>]+>/g, ' ')
      .replaceAll('\u2060', '')
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/ ([.,])/g, '$1')
      .trim(),
  );
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

/** The links of a page, by their texts. */
export function linksOf(body: string): Map<string, string> {
  const links = body.matchAll(/<a [^>]*href="([^"]*)"[^>]*>(.*?)<\/a>/gs);
  return new Map([...links].map(([, href, content]) => [textOf(content!), unescape(href!).replace(basePath, '')]));
}

/** Presses the first button with this name, as a browser without script does: with all fields of the form. */
export async function press(
  page: PageUnderTest,
  body: string,
  name: string,
  typed: Record<string, string> = {},
  headers?: Record<string, string>,
): Promise<Answer> {
  const [, action = ''] = /<form method="post" action="([^"]+)"/.exec(body)!;
  const button = buttonsOf(body).find((each) => each.name.includes(name));
  if (button === undefined) throw new Error(`no button ${name} among ${JSON.stringify(buttonsOf(body))}`);
  const form = { ...fieldsOf(body), ...typed, ...(button.value !== undefined && { slot: unescape(button.value) }) };
  const own = { origin: new URL(page.pageUrl).origin, 'sec-fetch-site': 'same-origin' };
  return page.open(unescape(action).replace(basePath, ''), { form, headers: { ...own, ...headers } });
}

/** The values of the fields of a form. */
export function fieldsOf(body: string): Record<string, string> {
  const inputs = [...body.matchAll(/<input ([^>]*)>/g)].map(([, attributes]) => [
    /name="([^"]*)"/.exec(attributes!)![1]!,
    unescape(/value="([^"]*)"/.exec(attributes!)?.[1] ?? ''),
  ]);
  const areas = [...body.matchAll(/<textarea [^>]*name="([^"]*)"[^>]*>\n?(.*?)<\/textarea>/gs)].map(
    ([, name, value]) => [name!, unescape(value!)],
  );
  return Object.fromEntries([...inputs, ...areas]) as Record<string, string>;
}

/** Chooses the first time with this name in the week at a path, and opens the form. */
export async function choose(
  page: PageUnderTest,
  path: string,
  time: string,
  headers?: Record<string, string>,
): Promise<{ answer: Answer; location: string }> {
  const week = await page.open(path, { headers });
  const { status, location } = await press(page, week.body, time, {}, headers);
  if (status !== 303) throw new Error(`choosing ${time} answers ${status}`);
  return { answer: await page.open(location!, { headers }), location: location! };
}

export const person = { name: 'Grace Hopper', email: 'grace@example.com' };

export interface StoredParticipation {
  state: string;
  name?: string;
  note?: string;
}

/** Who has booked or holds something of a provider. */
export async function participationsOf(
  page: PageUnderTest,
  { crmId, providerReference }: ProviderUnderTest,
): Promise<StoredParticipation[]> {
  const parts: Buffer[] = [];
  for await (const { json } of page.participations.listParticipations({ crmId, providerReference })) parts.push(json);
  return JSON.parse(`[${Buffer.concat(parts).toString()}]`) as StoredParticipation[];
}
