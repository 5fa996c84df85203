import { ParticipationState, TimeslotState } from '@scheduling/contracts/calendar/v1';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Answer,
  basePath,
  book,
  type BookingUnderTest,
  cancelByCrm,
  owner,
  type PageUnderTest,
  setClock,
  setRules,
  startPage,
} from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(async () => {
  await setClock(page, '2031-05-28T08:00:00Z');
  await setRules(page, 120);
});

interface Participation {
  state: string;
  appointmentReference: string;
  attendanceConfirmedAt?: string;
}

async function read({ reference }: BookingUnderTest): Promise<Participation> {
  const { json } = await page.participations.getParticipation({ ...owner, participationReference: reference });
  return JSON.parse(json.toString()) as Participation;
}

/** Gives an appointment of half an hour another time, as the CRM does it. */
async function reschedule({ appointmentReference }: { appointmentReference: string }, start: string): Promise<void> {
  const end = Temporal.PlainDateTime.from(start).add({ minutes: 30 }).toString();
  await page.appointments.updateAppointment({
    ...owner,
    appointmentReference,
    start,
    end,
    noAddress: false,
    sendMails: false,
  });
}

/** What the button of a page does, as a browser sends it. */
function press(body: string, typed: Record<string, string> = {}): Promise<Answer> {
  const [, action = '', start = ''] =
    /<form method="post" action="([^"]+)">\s*<input type="hidden" name="start" value="([^"]+)">/.exec(body)!;
  const form = { start, ...typed };
  const headers = { origin: new URL(page.pageUrl).origin, 'sec-fetch-site': 'same-origin' };
  return page.open(action.replaceAll('&amp;', '&').replace(basePath, ''), { form, headers });
}

/** The links to times, by their texts. */
function timesOf(body: string): Map<string, string> {
  const links = body.matchAll(
    /<li><a class="button quiet" href="([^"]+)"><span class="hidden">(.*?)<\/span>(.*?)<\/a>/g,
  );
  return new Map(
    [...links].map(([, href, day, time]) => [day! + time!, href!.replaceAll('&amp;', '&').replace(basePath, '')]),
  );
}

describe('cancelling', () => {
  it('asks, tells the provider why, and then shows the booking as it is', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/cancel?lang=en`);
    expect([question.status, question.heading]).toEqual([200, 'Cancel this booking?']);
    expect(await accessibilityFindings(question.body)).toEqual([]);
    expect((await read(booking)).state).toBe('BOOKED');

    const answer = await press(question.body, { message: 'I am ill.\r\nSorry' });
    expect([answer.status, answer.location]).toEqual([303, `${booking.path}?done=cancelled&lang=en`]);
    expect((await read(booking)).state).toBe('CANCELED');
    const after = await page.open(answer.location!);
    expect(after.body).toContain('<p class="note" role="status">The cancellation is complete.</p>');
  });

  it('twice, or after the CRM has, says that it is cancelled', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/cancel`);
    await cancelByCrm(page, booking.reference);
    const asked = await page.open(`${booking.path}/cancel`);
    expect([asked.status, asked.heading]).toEqual([200, 'Already cancelled']);
    const { status, location } = await press(question.body);
    expect(status).toBe(303);
    expect((await page.open(location!)).heading).toBe('Cancelled');
    // Nobody reads this message.
    const late = await press(question.body, { message: 'I am ill.' });
    expect([late.status, late.heading]).toEqual([200, 'Already cancelled']);
  });

  it('too late says so, with phone and mail, and changes nothing', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/cancel`);
    await setClock(page, '2031-06-02T07:00:00Z');
    for (const [answer, status] of [
      [await page.open(`${booking.path}/cancel`), 200],
      [await press(question.body), 409],
    ] as const) {
      expect([answer.status, answer.heading]).toEqual([status, 'Too late to cancel here']);
      expect(answer.body).toContain('href="tel:+49301234567"');
      expect(answer.body).toContain('href="mailto:hello@blum.example"');
      expect(await accessibilityFindings(answer.body)).toEqual([]);
    }
    expect((await read(booking)).state).toBe('BOOKED');
  });

  it('with a message that is too long asks again, with what was typed', async () => {
    const booking = await book(page);
    const message = `<i>${'🙂'.repeat(498)}`;
    const { status, body } = await page.open(`${booking.path}/cancel`, { form: { message } });
    expect(status).toBe(400);
    expect(body).toContain('<title>Error: Cancel this booking?</title>');
    expect(body).toMatch(/<div class="note error" role="alert" tabindex="-1" autofocus>.*<a href="#message">/s);
    expect(body).toContain(`&lt;i&gt;${'🙂'.repeat(498)}</textarea>`);
    expect(await accessibilityFindings(body)).toEqual([]);
    expect((await read(booking)).state).toBe('BOOKED');
  });

  it('accepts a message of 500 characters, whatever a browser makes of its line breaks', async () => {
    const booking = await book(page);
    const form = { message: `${'🙂'.repeat(498)}\r\nx` };
    expect((await page.open(`${booking.path}/cancel`, { form })).status).toBe(303);
  });

  it('asks again, with the new time and what was typed, if the CRM has changed the time meanwhile', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/cancel?lang=en`);
    await reschedule(booking, '2031-06-02T14:00');
    const again = await press(question.body, { message: 'I am ill.' });
    expect([again.status, again.heading]).toEqual([409, 'Cancel this booking?']);
    expect(again.body).toContain('<title>Error: Cancel this booking?</title>');
    expect(again.body).toMatch(/<div class="note error" role="alert"[^>]*>\s*<h2>The time has been changed/);
    expect(again.body).not.toContain('aria-invalid');
    expect(again.body).toContain('14:00–14:30');
    expect(again.body).toContain('>I am ill.</textarea>');
    expect(await accessibilityFindings(again.body)).toEqual([]);
    expect((await read(booking)).state).toBe('BOOKED');
    expect((await press(again.body, { message: 'I am ill.' })).status).toBe(303);
    expect((await read(booking)).state).toBe('CANCELED');
  });

  it('compares no time that the form of an earlier version does not have, or that cannot be read', async () => {
    for (const start of ['', 'yesterday']) {
      const booking = await book(page);
      const question = await page.open(`${booking.path}/cancel`);
      await reschedule(booking, '2031-06-02T14:00');
      expect((await press(question.body, { start })).status).toBe(303);
    }
  });

  it('takes a time that no calendar has for another one', async () => {
    const { path } = await book(page);
    const { status } = await page.open(`${path}/cancel`, { form: { start: '+275760-09-13T00:00:00Z' } });
    expect(status).toBe(409);
  });

  it('is not claimed by an address', async () => {
    const { path } = await book(page);
    for (const done of ['cancelled', 'attending', 'anything'])
      expect((await page.open(`${path}?done=${done}`)).body).not.toContain('role="status"');
  });
});

describe('saying that one will be there', () => {
  it('asks, and is shown from then on', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/attend`);
    expect(question.heading).toBe('Will you be there?');
    expect(await accessibilityFindings(question.body)).toEqual([]);
    const { status, location } = await press(question.body);
    expect([status, location]).toEqual([303, `${booking.path}?done=attending`]);
    const after = await page.open(location!);
    expect(after.body).toContain('role="status">Thank you.');
    expect(after.body).toContain('You have said that you will be there.');
    expect(after.body).not.toContain('I will be there</a>');
    expect((await page.open(`${booking.path}/attend`)).location).toBe(`${booking.path}?done=attending`);
  });

  it('asks again, with the new time, if the CRM has changed the time meanwhile', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/attend`);
    await reschedule(booking, '2031-06-02T14:00');
    const again = await press(question.body);
    expect([again.status, again.heading]).toEqual([409, 'Will you be there?']);
    expect(again.body).toMatch(/<div class="note error" role="alert"[^>]*>\s*<h2>The time has been changed/);
    expect(again.body).toContain('14:00–14:30');
    expect(await accessibilityFindings(again.body)).toEqual([]);
    expect(await read(booking)).not.toHaveProperty('attendanceConfirmedAt');
    expect((await press(again.body)).status).toBe(303);
    expect(await read(booking)).toHaveProperty('attendanceConfirmedAt');
  });

  it('of a cancelled booking says that it is cancelled', async () => {
    const booking = await book(page);
    const question = await page.open(`${booking.path}/attend`);
    await cancelByCrm(page, booking.reference);
    for (const answer of [await page.open(`${booking.path}/attend`), await press(question.body)])
      expect([answer.status, answer.heading]).toEqual([200, 'Already cancelled']);
  });
});

describe('moving', () => {
  it('shows the week, asks, and moves', async () => {
    const booking = await book(page);
    const week = await page.open(`${booking.path}/move`);
    expect([week.status, week.heading]).toEqual([200, 'Choose another time']);
    expect(await accessibilityFindings(week.body)).toEqual([]);
    expect(week.body).toMatch(/<strong>2\s–\s8 June 2031<\/strong>/);
    expect(week.body).toContain('All times are in Central European Summer Time (UTC+2).');
    const times = timesOf(week.body);
    expect([...times.keys()]).toEqual([
      'Monday, 2 June 2031, 10:30–11:00',
      'Monday, 2 June 2031, 11:00–11:30',
      'Monday, 2 June 2031, 11:30–12:00',
    ]);

    const question = await page.open(times.get('Monday, 2 June 2031, 11:00–11:30')!);
    expect([question.status, question.heading]).toEqual([200, 'Move this booking?']);
    expect(question.body).toMatch(/Current time<\/dt>.*10:00–10:30.*New time<\/dt>.*11:00–11:30/s);
    expect(await accessibilityFindings(question.body)).toEqual([]);
    const answer = await press(question.body);
    expect([answer.status, answer.location]).toEqual([303, `${booking.path}?done=moved`]);
    const { body } = await page.open(answer.location!);
    expect(body).toContain('role="status">Your booking has been moved.');
    expect(body).toContain('11:00–11:30');
  });

  it('to a seat of an open appointment works likewise, and says what else is different there', async () => {
    const booking = await book(page);
    const reference = `course-${randomUUID()}`;
    await page.appointments.createAppointment({
      ...owner,
      reference,
      start: '2031-06-03T18:00',
      end: '2031-06-03T18:30',
      capacity: 5,
      acceptBookings: true,
      resourceReference: `resource-${booking.timeslotReference}`,
      productReference: 'massage',
      description: 'Massage for beginners',
      address: { kind: { $case: 'text', value: 'Studio 2' } },
      price: { value: 45, currency: 'EUR' },
      participations: [],
    });
    const link = timesOf((await page.open(`${booking.path}/move`)).body).get('Tuesday, 3 June 2031, 18:00–18:30')!;
    expect(link).toContain(`appointment=${reference}`);
    const question = await page.open(link);
    // Whoever was asked about another time has to choose again.
    await reschedule({ appointmentReference: reference }, '2031-06-03T19:00');
    const answer = await press(question.body);
    expect([answer.status, answer.heading]).toEqual([409, 'No longer available']);
    expect((await read(booking)).appointmentReference).toBe(booking.appointmentReference);
    await reschedule({ appointmentReference: reference }, '2031-06-03T18:00');
    expect(question.body).toMatch(/New title<\/dt><dd[^>]*>Massage for beginners<.*New place<\/dt><dd[^>]*>Studio 2</s);
    expect((await press(question.body)).status).toBe(303);
    expect((await read(booking)).appointmentReference).toBe(reference);
  });

  it.each([
    'appointment=a%00b',
    'timeslot=t%00&start=2031-06-02T08:00:00Z',
    'timeslot=t&start=yesterday',
    ...['%2B275760-09-13', '%2B010000-01-01', '-000001-01-01'].map((date) => `timeslot=&start=${date}T00:00:00Z`),
    '',
  ])('to what is no place changes nothing: %s', async (query) => {
    const booking = await book(page);
    const address = `${booking.path}/move/confirm?${query.replace('=&', `=${booking.timeslotReference}&`)}`;
    for (const answer of [await page.open(address), await page.open(address, { form: {} })])
      expect([answer.status, answer.heading]).toEqual([409, 'No longer available']);
  });

  it('to a time that has just been taken leads back to the others', async () => {
    const booking = await book(page);
    const [link] = timesOf((await page.open(`${booking.path}/move`)).body).values();
    const question = await page.open(link!);
    await page.timeslots.updateTimeslot({
      ...owner,
      timeslotReference: booking.timeslotReference,
      state: TimeslotState.CREATED,
    });
    for (const answer of [await press(question.body), await page.open(link!)]) {
      expect([answer.status, answer.heading]).toEqual([409, 'No longer available']);
      expect(answer.body).toContain(`href="${basePath}${booking.path}/move?date=2031-06-02"`);
      expect(await accessibilityFindings(answer.body)).toEqual([]);
    }
  });

  it('goes from week to week, and ignores what is no date', async () => {
    const booking = await book(page);
    const { body } = await page.open(`${booking.path}/move?date=2031-06-12&lang=de`);
    expect(body).toContain('In dieser Woche ist kein Termin frei.');
    expect(body).toContain(`href="${basePath}${booking.path}/move?date=2031-06-02&amp;lang=de">Vorherige Woche</a>`);
    expect(body).toContain(`href="${basePath}${booking.path}/move?date=2031-06-16&amp;lang=de">Nächste Woche</a>`);
    expect(await accessibilityFindings(body)).toEqual([]);
    for (const date of ['2031-13-01', 'next', ''])
      expect(timesOf((await page.open(`${booking.path}/move?date=${date}`)).body).size).toBe(3);
  });

  it('leads no further than 13 weeks, but asks about a later time as well as it moves there', async () => {
    const booking = await book(page, { date: '2031-10-06' });
    for (const [date, hasNext] of [
      ['2031-08-18', true],
      ['2031-08-25', false],
      ['2031-10-06', false],
      ['9999-12-31', false],
    ] as const) {
      const { status, body } = await page.open(`${booking.path}/move?date=${date}`);
      expect([status, body.includes('Next week')], date).toEqual([200, hasNext]);
    }
    const [link] = timesOf((await page.open(`${booking.path}/move?date=2031-10-06`)).body).values();
    const question = await page.open(link!);
    expect([question.status, question.heading]).toEqual([200, 'Move this booking?']);
    expect((await press(question.body)).status).toBe(303);
  });

  it('leaves room on narrow screens: a German time ends with a word that is only heard', async () => {
    const { path } = await book(page);
    const { body } = await page.open(`${path}/move?lang=de`);
    expect(body).toContain(
      '<span class="hidden">Montag, 2. Juni 2031, </span>10:30–11:00<span class="hidden"> Uhr</span></a>',
    );
  });

  it('of a request says that it stays one', async () => {
    const booking = await book(page, { state: ParticipationState.REQUESTED });
    const week = await page.open(`${booking.path}/move`);
    expect(week.body).toContain('Your request has to be confirmed for the new time, too.');
    const [link] = timesOf(week.body).values();
    const question = await page.open(link!);
    expect(question.heading).toBe('Move this request?');
    expect(question.body).toContain('Your request has to be confirmed for the new time, too.');
    const { status, location } = await press(question.body);
    expect(status).toBe(303);
    expect((await page.open(location!)).body).toContain('role="status">Your request has been moved.');
    expect((await read(booking)).state).toBe('REQUESTED');
    expect((await page.open(`${booking.path}/cancel`)).heading).toBe('Cancel this request?');
  });

  it('too late says so', async () => {
    const booking = await book(page);
    const [link] = timesOf((await page.open(`${booking.path}/move`)).body).values();
    const question = await page.open(link!);
    await setClock(page, '2031-06-02T07:00:00Z');
    for (const [answer, status] of [
      [await page.open(`${booking.path}/move`), 200],
      [await page.open(link!), 200],
      [await press(question.body), 409],
    ] as const)
      expect([answer.status, answer.heading]).toEqual([status, 'Too late to move here']);
  });

  it('in the hour that the clock shows twice names the offset', async () => {
    const { path, timeslotReference } = await book(page, { date: '2031-10-26' });
    await setClock(page, '2031-10-20T08:00:00Z');
    const timeslot = {
      resourceReference: `resource-${timeslotReference}`,
      start: '2031-10-26T01:30',
      end: '2031-10-26T03:00',
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: TimeslotState.BOOKABLE,
    };
    await page.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
    const { body } = await page.open(`${path}/move?date=2031-10-26`);
    const day = 'Sunday, 26 October 2031, ';
    expect([...timesOf(body).keys()]).toEqual(
      expect.arrayContaining([`${day}02:30 (UTC+2) – 02:00 (UTC+1)`, `${day}02:30 (UTC+1) – 03:00 (UTC+1)`]),
    );
    expect(body).toContain('(UTC+2 – UTC+1)');
  });
});

describe('what is not offered', () => {
  const { RESERVED, REQUESTED, BOOKED } = ParticipationState;
  const [early, late, over] = ['2031-05-28T08:00:00Z', '2031-06-02T07:00:00Z', '2031-06-02T09:00:00Z'];
  const [cancelled, notHere] = ['Already cancelled', 'Not possible here'];
  const [noCancelling, noMove, noAnswer] = ['Too late to cancel here', 'Too late to move here', 'No longer needed'];
  const byPerson = ({ path }: BookingUnderTest) => page.open(`${path}/cancel`, { form: {} });
  const byCrm = ({ reference }: BookingUnderTest) => cancelByCrm(page, reference);
  const whole = ({ appointmentReference }: BookingUnderTest) =>
    page.appointments.cancelAppointment({ ...owner, appointmentReference });

  interface Case {
    what: string;
    state: ParticipationState;
    now: string;
    end?: (booking: BookingUnderTest) => Promise<unknown>;
    /** What the pages for cancelling, moving and saying that one will be there are called; undefined: it is offered. */
    headings: [cancel: string | undefined, move: string | undefined, attend: string | undefined];
  }
  const cases: Case[] = [
    { what: 'a booking', state: BOOKED, now: early, headings: [undefined, undefined, undefined] },
    { what: 'a booking, too late', state: BOOKED, now: late, headings: [noCancelling, noMove, undefined] },
    { what: 'a booking that is over', state: BOOKED, now: over, headings: [noCancelling, noMove, noAnswer] },
    { what: 'a request', state: REQUESTED, now: early, headings: [undefined, undefined, notHere] },
    { what: 'a request, too late', state: REQUESTED, now: late, headings: [undefined, noMove, notHere] },
    { what: 'a request that has lapsed', state: REQUESTED, now: over, headings: [noCancelling, noMove, noAnswer] },
    { what: 'a reservation', state: RESERVED, now: early, headings: [notHere, notHere, notHere] },
    ...Object.entries({ 'its person': byPerson, 'the CRM': byCrm, 'the end of its appointment': whole }).flatMap(
      ([who, end]) =>
        [BOOKED, REQUESTED].map((state): Case => ({
          what: `what was ${state} and is cancelled by ${who}`,
          state,
          now: early,
          end,
          headings: [cancelled, cancelled, cancelled],
        })),
    ),
  ];

  it.each(cases)('has no button and is not done: $what', async ({ state, now, end, headings }) => {
    const booking = await book(page, { state });
    await end?.(booking);
    await setClock(page, now);
    const stored = () => page.participations.getParticipation({ ...owner, participationReference: booking.reference });
    const before = await stored();
    const { body } = await page.open(booking.path);
    const place = `timeslot=${booking.timeslotReference}&start=2031-06-02T08:30:00Z`;
    const actions = [
      { button: 'cancel', pages: ['cancel'] },
      { button: 'move', pages: ['move', `move/confirm?date=2031-06-02&${place}`] },
      { button: 'attend', pages: ['attend'] },
    ];
    for (const [index, { button, pages }] of actions.entries()) {
      const heading = headings[index];
      expect(body.includes(`${booking.path}/${button}"`), button).toBe(heading === undefined);
      if (heading === undefined) continue;
      for (const address of pages) {
        const { status, heading: shown } = await page.open(`${booking.path}/${address}`);
        expect([status, shown], address).toEqual([200, heading]);
      }
      const answer = await page.open(`${booking.path}/${pages.at(-1)}`, { form: {} });
      // Cancelling again leads to the page of the booking.
      const refused = heading === cancelled ? 200 : 409;
      expect([answer.status, answer.heading], button).toEqual(
        heading === cancelled && button === 'cancel' ? [303, undefined] : [refused, heading],
      );
    }
    expect(await stored()).toEqual(before);
  });
});
