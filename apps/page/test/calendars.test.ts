import { CalendarDetails, type CreateAppointmentRequest, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually, patiently, whilePaused } from '@scheduling/testing';
import ICAL from 'ical.js';
import nodeIcal from 'node-ical';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readsPerHour } from '../src/calendar-limit.ts';
import {
  type Answer,
  freshAddress,
  owner,
  type PageUnderTest,
  setClock,
  startPage,
  timeTwice,
} from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
  await setClock(page, now);
  await speak('en');
});
afterAll(() => page[Symbol.asyncDispose]());

const now = '2031-05-28T08:00:00Z';
const dayMs = 24 * 60 * 60 * 1_000;

/** Sets the language of the CRM. */
const speak = (language: string) => page.admin.updateCrm({ crmId: owner.crmId, language });

interface CalendarUnderTest {
  reference: string;
  resourceReference: string;
  path: string;
}

/** A subscription to a resource of its own. */
async function subscribe(details: CalendarDetails = CalendarDetails.NONE, filter = {}): Promise<CalendarUnderTest> {
  const [reference, resourceReference] = [`calendar-${randomUUID()}`, `room-${randomUUID()}`];
  const request = { ...owner, reference, resourceReference, details, ...filter };
  const { secret } = await page.calendars.createCalendar(request);
  return { reference, resourceReference, path: pathOf(secret!) };
}

const pathOf = (secret: string): string => `/calendar/${secret}.ics`;

async function addAppointment(
  { resourceReference }: { resourceReference: string },
  changes: Partial<CreateAppointmentRequest> = {},
): Promise<string> {
  const reference = `appointment-${randomUUID()}`;
  const appointment = {
    ...owner,
    reference,
    start: '2031-06-02T10:00',
    end: '2031-06-02T11:00',
    capacity: 8,
    acceptBookings: true,
    resourceReference,
    productReference: 'yoga',
    participations: [],
  };
  await patiently(() => page.appointments.createAppointment({ ...appointment, ...changes }));
  return reference;
}

async function join(appointmentReference: string, state: ParticipationState = ParticipationState.BOOKED) {
  const customerReference = `customer-${randomUUID()}`;
  const reference = `participation-${randomUUID()}`;
  const person = { userName: 'Ada Lovelace', email: 'ada@example.com', mobile: '+49 170 1' };
  await patiently(() => page.customers.createCustomer({ ...owner, customerReference, ...person }));
  const request = { ...owner, reference, appointmentReference, customerReference, state };
  const options = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: false };
  await patiently(() => page.participations.createParticipation({ ...request, ...options }));
  return { reference, customerReference };
}

const move = (participationReference: string, state: ParticipationState) =>
  page.participations.updateParticipation({
    ...owner,
    participationReference,
    state,
    ignoreCapacity: false,
    sendMails: false,
  });

const update = (appointmentReference: string, changes: object) =>
  page.appointments.updateAppointment({
    ...owner,
    appointmentReference,
    noAddress: false,
    sendMails: false,
    ...changes,
  });

const withNote = (name: string, note: string) => ({
  reference: `participation-${randomUUID()}`,
  name,
  email: 'grace@example.com',
  note,
  state: ParticipationState.BOOKED,
});

interface ReadEvent {
  summary: string;
  description: string | undefined;
  location: string | undefined;
  start: string;
  status: string;
  sequence: number;
  modified: string;
}

interface ReadFeed {
  calendar: ICAL.Component;
  events: ReadEvent[];
  body: string;
  answer: Answer;
}

/**
 * Reads a calendar with two parsers, which must agree.
 *
 * @param known what the reader has: a change must be seen although it says so
 */
async function read({ path }: { path: string }, known?: ReadFeed): Promise<ReadFeed> {
  const headers = known && { 'if-none-match': known.answer.headers.get('etag')! };
  const answer = await eventually(async () => {
    const each = await page.open(path, { headers });
    // A machine that runs other tests may be too slow.
    expect(each.status).not.toBe(503);
    return each;
  });
  expect(answer.status, answer.body).toBe(200);
  const calendar = new ICAL.Component(ICAL.parse(answer.body) as unknown[]);
  const events = calendar.getAllSubcomponents('vevent').map((event) => {
    const valueOf = (name: string) => event.getFirstPropertyValue(name) as { toString(): string } | null;
    const text = (name: string) => valueOf(name)?.toString();
    return {
      summary: text('summary')!,
      description: text('description'),
      location: text('location'),
      start: text('dtstart')!,
      status: text('status')!,
      sequence: Number(text('sequence')),
      modified: text('last-modified')!,
    };
  });
  const others = Object.values(nodeIcal.sync.parseICS(answer.body)).filter((each) => each?.type === 'VEVENT');
  expect(others.map((each) => [each.summary, each.start.toISOString()])).toEqual(
    events.map(({ summary, start }) => [summary, new Date(start).toISOString()]),
  );
  return { calendar, events, body: answer.body, answer };
}

const tagOf = ({ answer }: ReadFeed) => ({ 'if-none-match': answer.headers.get('etag')! });

const summariesOf = async (calendar: { path: string }): Promise<string[]> =>
  (await read(calendar)).events.map(({ summary }) => summary);

describe('a calendar', () => {
  it('has the name of the provider, says how often to read it, and asks nobody for an answer', async () => {
    const subscription = await subscribe();
    await addAppointment(subscription);
    const { calendar, body, answer } = await read(subscription);
    const name = `Praxis <Blum> (${subscription.resourceReference})`;
    expect(calendar.getFirstPropertyValue('name')).toBe(name);
    expect(calendar.getFirstPropertyValue('x-wr-calname')).toBe(name);
    expect(body).toContain('\r\nREFRESH-INTERVAL;VALUE=DURATION:PT15M\r\nX-PUBLISHED-TTL:PT15M\r\n');
    expect(body).not.toMatch(/ATTENDEE|ORGANIZER|VALARM|METHOD|TZID/);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/calendar; charset=utf-8',
      'cache-control': 'private, max-age=300',
      'x-robots-tag': 'noindex',
      'x-content-type-options': 'nosniff',
    });
  });

  it('of the whole provider has its name only, and all appointments; one of a contact only those', async () => {
    const contactReference = `contact-${randomUUID()}`;
    const all = await subscribe(CalendarDetails.NONE, { resourceReference: undefined });
    const ofContact = await subscribe(CalendarDetails.NONE, { resourceReference: undefined, contactReference });
    const other = await subscribe();
    const title = randomUUID();
    await addAppointment(other, { description: `other ${title}` });
    await addAppointment(other, { description: `own ${title}`, contactReference });
    expect((await read(all)).calendar.getFirstPropertyValue('name')).toBe('Praxis <Blum>');
    expect(await summariesOf(all)).toEqual(
      expect.arrayContaining([`other ${title} (0 of 8)`, `own ${title} (0 of 8)`]),
    );
    expect(await summariesOf(ofContact)).toEqual([`own ${title} (0 of 8)`]);
  });

  it('has the active appointments from 30 days ago until in 400 days', async () => {
    const subscription = await subscribe();
    const at = (days: number, minutes: number) => {
      const start = new Date(Date.parse(now) + days * dayMs + minutes * 60_000);
      // The provider is in Berlin, two hours ahead in summer.
      const local = (date: Date) => new Date(date.getTime() + 2 * 60 * 60_000).toISOString().slice(0, 16);
      return { start: local(start), end: local(new Date(start.getTime() + 30 * 60_000)) };
    };
    await addAppointment(subscription, { description: 'too old', ...at(-30, -1) });
    await addAppointment(subscription, { description: 'old', ...at(-30, 5) });
    await addAppointment(subscription, { description: 'far', ...at(400, -5) });
    await addAppointment(subscription, { description: 'too far', ...at(400, 5) });
    const cancelled = await addAppointment(subscription, { description: 'cancelled' });
    await page.appointments.cancelAppointment({ ...owner, appointmentReference: cancelled });
    const deleted = await addAppointment(subscription, { description: 'deleted' });
    const target = { $case: 'appointmentReference' as const, value: deleted };
    await page.appointments.deleteAppointments({ ...owner, target });
    expect(await summariesOf(subscription)).toEqual(['old (0 of 8)', 'far (0 of 8)']);
  });

  it('shows what is only requested as tentative, and no holds', async () => {
    const subscription = await subscribe(CalendarDetails.NAMES);
    const appointment = await addAppointment(subscription);
    await join(appointment, ParticipationState.RESERVED);
    const { reference } = await join(appointment, ParticipationState.REQUESTED);
    expect((await read(subscription)).events).toMatchObject([
      { summary: 'yoga (0 of 8, 1 requested)', status: 'TENTATIVE', description: 'Ada Lovelace (requested)' },
    ]);
    await move(reference, ParticipationState.BOOKED);
    expect((await read(subscription)).events).toMatchObject([
      { summary: 'yoga (1 of 8)', status: 'CONFIRMED', description: 'Ada Lovelace' },
    ]);
  });

  it('shows where an appointment is, and no appointment that only a hold has made', async () => {
    const subscription = await subscribe();
    const timeslotReference = `timeslot-${randomUUID()}`;
    const timeslot = {
      reference: timeslotReference,
      resourceReference: subscription.resourceReference,
      start: '2031-06-03T10:00',
      end: '2031-06-03T12:00',
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: 'TIMESLOT_STATE_BOOKABLE' as const,
    };
    await page.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
    const place = { timeslotReference, start: '2031-06-03T10:00', productReference: 'massage' };
    await page.bookings.bookSlot({
      ...owner,
      reference: `hold-${randomUUID()}`,
      place: { $case: 'timeslot', value: place },
      state: ParticipationState.RESERVED,
      ignoreNotice: true,
      sendMails: false,
    });
    const value = { street: 'Lange Straße', number: '1', zip: '10115', city: 'Berlin', countryCode: 'DE' };
    await addAppointment(subscription, { address: { kind: { $case: 'address', value } } });
    const { events } = await read(subscription);
    expect(events.map(({ summary, location }) => [summary, location])).toEqual([
      ['yoga (0 of 8)', expect.stringMatching(/^Lange Straße 1, 10115 Berlin, (Germany|Deutschland)$/)],
    ]);
  });

  it.each([
    [CalendarDetails.NONE, undefined],
    [CalendarDetails.NAMES, ['Ada Lovelace', 'Grace; Hopper']],
    [
      CalendarDetails.CONTACT,
      ['Ada Lovelace, +49 170 1, ada@example.com', 'Grace; Hopper, grace@example.com, Knee, left'],
    ],
  ])('tells of those who take part what it may: %s', async (details, lines) => {
    const subscription = await subscribe(details);
    const appointment = await addAppointment(subscription, {
      participations: [withNote('Grace; Hopper', 'Knee,\nleft')],
    });
    await join(appointment);
    const { events, body } = await read(subscription);
    expect(events.map(({ summary }) => summary)).toEqual(['yoga (2 of 8)']);
    expect(events[0]!.description?.split('\n').toSorted()).toEqual(lines);
    const unfolded = body.replaceAll('\r\n ', '');
    if (details === CalendarDetails.NONE) expect(unfolded).not.toMatch(/Ada|Grace|example\.com|\+49/);
    if (details === CalendarDetails.NAMES) expect(unfolded).not.toMatch(/example\.com|\+49|Knee/);
  });
});

describe('the number of an event', () => {
  it('rises with every change of its text, and with nothing else', async () => {
    const subscription = await subscribe(CalendarDetails.CONTACT);
    const changing = await addAppointment(subscription, { participations: [withNote('Grace', 'Knee')] });
    await addAppointment(subscription, { description: 'Other', start: '2031-06-04T10:00', end: '2031-06-04T11:00' });
    let before = await read(subscription);
    expect((await read(subscription)).body).toBe(before.body);

    const expectChange = async (what: string, change: () => Promise<unknown>, isDone?: (feed: ReadFeed) => boolean) => {
      await change();
      const after = await eventually(async () => {
        const feed = await read(subscription, before);
        expect(isDone?.(feed) ?? true, what).toBe(true);
        return feed;
      });
      expect((await page.open(subscription.path, { headers: tagOf(after) })).status, what).toBe(304);
      const [event, other] = after.events;
      const [eventBefore, otherBefore] = before.events;
      expect(other, what).toEqual(otherBefore);
      expect(event, what).not.toEqual(eventBefore);
      expect(event!.sequence, what).toBeGreaterThan(eventBefore!.sequence);
      expect(Date.parse(event!.modified), what).toBeGreaterThan(Date.parse(eventBefore!.modified));
      expect((await read(subscription)).body, what).toBe(after.body);
      before = after;
    };
    let ada: Awaited<ReturnType<typeof join>>;
    const customer = (changes: object) =>
      page.customers.updateCustomer({ ...owner, customerReference: ada.customerReference, ...changes });
    const descriptionHas = (text: string) => (feed: ReadFeed) => feed.events[0]!.description!.includes(text);
    await expectChange('booking', async () => (ada = await join(changing)));
    await expectChange('rename', () => customer({ userName: 'Ada King' }), descriptionHas('Ada King'));
    await expectChange('phone', () => customer({ mobile: '+49 170 2' }), descriptionHas('+49 170 2'));
    await expectChange('address', () => customer({ email: 'king@example.com' }), descriptionHas('king@example.com'));
    await expectChange('title', () => update(changing, { description: 'Pilates' }));
    await expectChange('capacity', () => update(changing, { capacity: 9 }));
    await expectChange('time', () => update(changing, { start: '2031-06-02T12:00', end: '2031-06-02T13:00' }));
    await expectChange('place', () => update(changing, { address: { kind: { $case: 'text', value: 'Room 2' } } }));
    await expectChange('cancellation', () => move(ada.reference, ParticipationState.CANCELED));
    await expectChange('request', async () => (ada = await join(changing, ParticipationState.REQUESTED)));
    await expectChange('decision', () => move(ada.reference, ParticipationState.BOOKED));
    await expectChange('erasure', () =>
      page.customers.deleteCustomer({
        ...owner,
        customerReference: ada.customerReference,
        ignoreFutureAppointments: true,
      }),
    );
    expect(before.body).not.toContain('Ada');

    // What is not in the text changes nothing.
    await update(changing, { notes: 'Internal' });
    await update(changing, { acceptBookings: false });
    await join(changing, ParticipationState.RESERVED);
    expect((await read(subscription)).body).toBe(before.body);
  });

  it('changes under a new name of the customer only where names are shown', async () => {
    const subscription = await subscribe(CalendarDetails.NONE);
    const names = await subscribe(CalendarDetails.NAMES, { resourceReference: subscription.resourceReference });
    const { customerReference } = await join(await addAppointment(subscription));
    const [before, namesBefore] = [await read(subscription), await read(names)];
    await page.customers.updateCustomer({ ...owner, customerReference, userName: 'Ada King' });
    await eventually(async () => expect((await read(names, namesBefore)).body).not.toBe(namesBefore.body));
    expect((await read(subscription)).body).toBe(before.body);
  });

  it('rises with the language of the CRM', async () => {
    const subscription = await subscribe(CalendarDetails.NAMES);
    await join(await addAppointment(subscription), ParticipationState.REQUESTED);
    const {
      events: [english],
    } = await read(subscription);
    await speak('de');
    const {
      events: [german],
    } = await read(subscription);
    await speak('en');
    expect(german).toMatchObject({ summary: 'yoga (0 von 8, 1 angefragt)', description: 'Ada Lovelace (angefragt)' });
    expect(german!.sequence).toBeGreaterThan(english!.sequence);
  });

  it('is higher when an event comes back, and when the URL is replaced', async () => {
    const subscription = await subscribe(CalendarDetails.NONE, { contactReference: 'mara' });
    const appointment = await addAppointment(subscription, { contactReference: 'mara' });
    const numberOf = async (path: string) => (await read({ path })).events[0]?.sequence;
    const first = await numberOf(subscription.path);
    await update(appointment, { contactReference: 'tom' });
    expect(await numberOf(subscription.path)).toBeUndefined();
    await update(appointment, { contactReference: 'mara' });
    const second = await numberOf(subscription.path);
    expect(second).toBeGreaterThan(first!);
    const { secret } = await page.calendars.replaceCalendarSecret({
      ...owner,
      calendarReference: subscription.reference,
    });
    expect(await numberOf(pathOf(secret!))).toBeGreaterThan(second!);
  });

  it('is the same for all who read it at once after a change', async () => {
    const subscription = await subscribe(CalendarDetails.NAMES);
    const appointment = await addAppointment(subscription);
    for (let round = 0; round < 3; round += 1) {
      await join(appointment);
      const answers = await Promise.all(Array.from({ length: 10 }, () => read(subscription)));
      expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
      expect(answers[0]!.events[0]!.summary).toBe(`yoga (${round + 1} of 8)`);
      expect((await read(subscription)).body).toBe(answers[0]!.body);
    }
  });
});

describe('an erased person', () => {
  it('is not in the calendar any more as soon as the customer is deleted, nor in past appointments', async () => {
    const subscription = await subscribe(CalendarDetails.CONTACT);
    const past = await addAppointment(subscription, { start: '2031-05-20T10:00', end: '2031-05-20T11:00' });
    const { customerReference } = await join(past);
    const before = await read(subscription);
    expect(before.body).toContain('Ada Lovelace');
    await page.customers.deleteCustomer({ ...owner, customerReference, ignoreFutureAppointments: true });
    const { events, body } = await read(subscription, before);
    expect(events).toMatchObject([{ summary: 'yoga (1 of 8)', description: 'Name removed' }]);
    expect(body).not.toMatch(/Ada|example\.com|\+49/);
  });
});

describe('a reader that knows the calendar', () => {
  it('is told that nothing has changed, until something has, the name of the provider included', async () => {
    const subscription = await subscribe();
    const appointment = await addAppointment(subscription);
    const { answer } = await read(subscription);
    const tag = answer.headers.get('etag')!;
    expect(tag).toMatch(/^"[\w-]+"$/);
    const ask = (value: string) => page.open(subscription.path, { headers: { 'if-none-match': value } });
    for (const value of [tag, `W/${tag}`, `"other", ${tag}`, `${tag.replace(/.{3}"$/, 'AAA"')}, ${tag}`]) {
      const { status, headers, body } = await ask(value);
      expect([status, body, headers.get('etag'), headers.get('cache-control')], value).toEqual([
        304,
        '',
        tag,
        'private, max-age=300',
      ]);
    }
    // The same events under another name, as after the provider was renamed.
    const renamed = await ask(tag.replace(/.{3}"$/, 'AAA"'));
    expect([renamed.status, renamed.body]).toEqual([200, answer.body]);
    await update(appointment, { description: 'Pilates' });
    const changed = await ask(tag);
    expect(changed.status).toBe(200);
    expect(changed.body).toContain('Pilates');
    expect(changed.headers.get('etag')).not.toBe(tag);
  });

  it('is refused after 60 reads in an hour, wherever they come from', async () => {
    const [subscription, other] = [await subscribe(), await subscribe()];
    for (let count = 0; count < readsPerHour; count += 1) expect((await page.open(subscription.path)).status).toBe(200);
    const refused = await page.open(subscription.path);
    expect(refused.status).toBe(429);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(3_000);
    expect(seconds).toBeLessThanOrEqual(3_600);
    expect((await page.open(other.path)).status).toBe(200);
  });

  it('of many calendars in one network is not refused: each has a limit of its own', async () => {
    const headers = { 'x-forwarded-for': freshAddress() };
    const [one, other] = [await subscribe(), await subscribe()];
    for (let count = 0; count < 40; count += 1)
      for (const { path } of [one, other]) expect((await page.open(path, { headers })).status).toBe(200);
  });
});

describe('a calendar that is none', () => {
  it('is answered as every link that does not work, whatever is wrong with it', async () => {
    const expected = await page.open('/booking/unknown');
    const [deleted, replaced] = [await subscribe(), await subscribe()];
    for (const { path } of [deleted, replaced]) expect((await page.open(path)).status).toBe(200);
    await page.calendars.deleteCalendar({ ...owner, calendarReference: deleted.reference });
    await page.calendars.replaceCalendarSecret({ ...owner, calendarReference: replaced.reference });
    const working = await subscribe();
    const secret = working.path.slice('/calendar/'.length, -'.ics'.length);
    const damaged = `${secret.startsWith('A') ? 'B' : 'A'}${secret.slice(1)}`;
    for (const path of [
      deleted.path,
      replaced.path,
      pathOf(damaged),
      pathOf(randomUUID()),
      pathOf(`${secret}A`),
      `/calendar/${secret}`,
      `/calendar/${secret}.ICS`,
      `${working.path}/`,
      `${working.path}/nothing`,
      `${working.path}%00`,
      '/calendar',
      '/calendar/',
      '/calendar/%ff.ics',
      `/calendar/${'a'.repeat(12_000)}.ics`,
      `/booking/${secret}`,
    ]) {
      const { status, body, headers } = await page.open(path);
      expect([status, body], path).toEqual([404, expected.body]);
      expect(Object.fromEntries(headers), path).toMatchObject({
        'cache-control': 'no-store',
        'x-robots-tag': 'noindex',
      });
    }
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await page.open(working.path, { method })).body, method).toBe(expected.body);
    expect((await page.open(working.path)).status).toBe(200);
  });

  it('makes its network wait after a few, but not for calendars that work', async () => {
    const working = await subscribe();
    const headers = { 'x-forwarded-for': freshAddress() };
    const elapsed = async (path: string, status: number): Promise<number> => {
      const startedMs = performance.now();
      expect((await page.open(path, { headers })).status).toBe(status);
      return performance.now() - startedMs;
    };
    await elapsed(working.path, 200);
    for (let count = 0; count < 20; count += 1) await elapsed(pathOf('A'.repeat(43)), 404);
    expect(await elapsed(pathOf('A'.repeat(43)), 404)).toBeGreaterThan(950);
    expect(await elapsed('/calendar/malformed', 404)).toBeGreaterThan(950);
    expect(await elapsed(working.path, 200)).toBeLessThan(950);
  });
});

describe('while a service is down', () => {
  it.each(['calendar', 'identity'] as const)('%s: a reader is asked to come back within 2 s', async (name) => {
    const subscription = await subscribe();
    await whilePaused([page.services[name].pid], async () => {
      const { status, headers, ms } = await timeTwice(() => page.open(subscription.path));
      expect(status).toBe(503);
      expect(ms).toBeLessThan(2_300);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(headers.get('cache-control')).toBe('no-store');
    });
    expect((await page.open(subscription.path)).status).toBe(200);
  });
});
