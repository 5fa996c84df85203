import { AskMobile, Confirmation, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  buttonsOf,
  changeRules,
  choose,
  fieldsOf,
  linksOf,
  massage,
  offerTimes,
  openPageOf,
  participationsOf,
  person,
  press,
  textOf,
  yoga,
} from './booking-page-under-test.ts';
import { basePath, type PageUnderTest, setClock, startPage, whenServed } from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(() => setClock(page, '2031-05-28T08:00:00Z'));

const [week, day] = ['Monday, 2 June 2031', 'Monday 2 June'];

describe('the offers', () => {
  it('are links with name, duration and price', async () => {
    const { path } = await openPageOf(page, { offers: { offers: [massage, yoga] } });
    const { status, heading, body } = await page.open(path);
    expect([status, heading]).toEqual([200, 'Book an appointment']);
    const links = linksOf(body);
    expect([...links.keys()]).toEqual([
      'Massage <deep> 30 minutes · €45.00',
      'Yoga 90 minutes',
      'Privacy notice (opens in a new tab)',
      'Deutsch',
    ]);
    expect(links.get('Yoga 90 minutes')).toBe(`${path}?offer=yoga`);
    expect(body).toContain('--brand: #7a1f5c');
    expect(textOf(body)).toContain('Test: this is not a real booking');
    expect(textOf(body)).toContain('Legal notice Praxis Blum Berlin Studio CRM Ltd London');
    expect(await accessibilityFindings(body)).toEqual([]);
  });

  it('of the same product are told apart', async () => {
    const offers = [massage, { ...massage, name: 'Massage, long', duration: 60 }];
    const provider = await openPageOf(page, { offers: { offers } });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00', { raster: 60 });
    const { body } = await page.open(provider.path);
    const link = linksOf(body).get('Massage, long 60 minutes · €45.00')!;
    expect(buttonsOf((await page.open(link)).body)[0]!.name).toBe(`${week}, 10:00–11:00`);
  });

  it('are skipped if there is one only', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { status, heading, body } = await page.open(provider.path);
    expect([status, heading]).toEqual([200, 'Massage &lt;deep&gt;']);
    expect(buttonsOf(body)).toHaveLength(2);
    expect(linksOf(body).has('All offers')).toBe(false);
  });

  it('are shown again for one that there is no more', async () => {
    const { path } = await openPageOf(page);
    for (const query of ['?offer=gone', '?offer=', '?offer=a%00b', '?offer=%EF%BF%BD', `?offer=${'a'.repeat(2_000)}`]) {
      const { status, heading, body } = await page.open(path + query);
      expect([status, heading], query).toEqual([200, 'Book an appointment']);
      expect(textOf(body)).toContain('This offer is no longer available Please choose another one.');
      expect(linksOf(body).get('Massage <deep> 30 minutes · €45.00')).toBe(`${path}?offer=massage`);
      expect(await accessibilityFindings(body)).toEqual([]);
    }
  });

  it('may be none: then the page names phone and mail', async () => {
    const { path } = await openPageOf(page, { offers: { offers: [] } });
    const { status, heading, body } = await page.open(path);
    expect([status, heading]).toEqual([200, 'No online booking at present']);
    expect(body).toContain('href="tel:+49301234567"');
    expect(await accessibilityFindings(body)).toEqual([]);
  });
});

describe('the week', () => {
  it('has its times as buttons under their days, in the zone of the provider', async () => {
    const provider = await openPageOf(page, { offers: { offers: [massage, yoga] } });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    await offerTimes(page, provider, '2031-06-04T18:00', '2031-06-04T18:30');
    const { body } = await page.open(`${provider.path}?offer=massage`);
    expect(buttonsOf(body)).toEqual([
      { name: `${week}, 10:00–10:30`, value: '2031-06-02T08:00:00.000Z' },
      { name: `${week}, 10:30–11:00`, value: '2031-06-02T08:30:00.000Z' },
      { name: 'Wednesday, 4 June 2031, 18:00–18:30', value: '2031-06-04T16:00:00.000Z' },
    ]);
    expect(body.match(/<h2>.*<\/h2>/g)!.slice(0, 2)).toEqual([`<h2>${week}</h2>`, '<h2>Wednesday, 4 June 2031</h2>']);
    const text = textOf(body);
    expect(text).toMatch(
      /30 minutes · €45\.00 All times are in Central European Summer Time \(UTC\+2\)\. 2\s–\s8 June 2031/,
    );
    expect(body).toContain('<title>Choose a time: Massage &lt;deep&gt;</title>');
    const links = linksOf(body);
    expect(links.get('All offers')).toBe(provider.path);
    expect(links.get('Previous week')).toBe(`${provider.path}?offer=massage&date=2031-05-26`);
    expect(await accessibilityFindings(body)).toEqual([]);
  });

  it('is in German, too, and all links and forms keep language and zone', async () => {
    const provider = await openPageOf(page, { offers: { offers: [massage, yoga] } });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:30', { raster: 90 });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:30', { resource: 'bob', raster: 90 });
    const { body, heading } = await page.open(`${provider.path}?offer=yoga&lang=de&zone=America/New_York`);
    expect(heading).toBe('Yoga');
    expect(buttonsOf(body)[0]!.name).toBe('Montag, 2. Juni 2031, 10:00–11:30 Uhr 04:00–05:30');
    const own = [...body.matchAll(/(?:href|action)="(\/[^"]+)"(?! lang="en")/g)].map(([, address]) => address!);
    expect(own.length).toBeGreaterThan(5);
    for (const address of own) {
      expect(address.replaceAll('&amp;', '&')).toMatch(/[?&]lang=de&zone=America%2FNew_York$/);
    }
    expect(await accessibilityFindings(body)).toEqual([]);
  });

  it('can be that of one person, or of anyone', async () => {
    const provider = await openPageOf(page, { offers: { offers: [yoga] } });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:30', { raster: 90 });
    await offerTimes(page, provider, '2031-06-02T14:00', '2031-06-02T15:30', { resource: 'bob', raster: 90 });
    const timesOf = (body: string) => buttonsOf(body).map(({ name }) => name.replace(`${week}, `, ''));
    const anyone = await page.open(provider.path);
    expect(timesOf(anyone.body)).toEqual(['10:00–11:30', '14:00–15:30']);
    expect(anyone.body).toMatch(/aria-current="true"[^>]*>Anyone</);
    const bob = await page.open(linksOf(anyone.body).get('Bob')!);
    expect(timesOf(bob.body)).toEqual(['14:00–15:30']);
    expect(bob.body).toMatch(/aria-current="true"[^>]*>Bob</);
    expect(bob.body.match(/ aria-current=/g)).toHaveLength(1);
    expect(fieldsOf(bob.body)).toMatchObject({ offer: 'yoga', with: 'bob' });
    // An address may name the person only, if there is one offer.
    expect(timesOf((await page.open(`${provider.path}?with=bob`)).body)).toEqual(['14:00–15:30']);
    expect(await accessibilityFindings(bob.body)).toEqual([]);
    // Somebody who is not there any more.
    const gone = await page.open(`${provider.path}?offer=yoga&with=carol`);
    expect(timesOf(gone.body)).toEqual(['10:00–11:30', '14:00–15:30']);
  });

  it('without a time leads to the next one', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-18T10:00', '2031-06-18T11:00');
    const first = await page.open(provider.path);
    expect(buttonsOf(first.body)[0]!.name).toBe('Wednesday, 18 June 2031, 10:00–10:30');
    const empty = await page.open(`${provider.path}?offer=massage&date=2031-06-05`);
    expect(textOf(empty.body)).toContain('There is no time available in this week.');
    expect(await accessibilityFindings(empty.body)).toEqual([]);
    const next = linksOf(empty.body).get('Next available time: Wednesday 18 June')!;
    expect(next).toBe(`${provider.path}?offer=massage&date=2031-06-18`);
    expect(buttonsOf((await page.open(next)).body)).toEqual(buttonsOf(first.body));
    expect((await page.open(linksOf(empty.body).get('Next week')!)).body).toMatch(/<strong>9\s–\s15 June 2031</);
  });

  it('without a time in all 13 weeks names phone and mail', async () => {
    const { path } = await openPageOf(page);
    for (const query of ['', '?offer=massage&date=2031-06-05']) {
      const { status, heading, body } = await page.open(path + query);
      expect([status, heading]).toEqual([200, 'Massage &lt;deep&gt;']);
      expect(textOf(body)).toContain('Please contact Praxis <Blum>: hello@blum.example +49 30 1234567');
      expect(await accessibilityFindings(body)).toEqual([]);
    }
  });

  it.each(['tomorrow', '2031-02-30', '9999-12-31', '0000-01-01'])('survives the date %s', async (date) => {
    const { path } = await openPageOf(page);
    expect((await page.open(`${path}?offer=massage&date=${date}`)).status).toBe(200);
  });

  it('of the day on which the clock is set back has the hour twice, with offsets', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-10-26T00:00Z', '2031-10-26T02:00Z');
    await setClock(page, '2031-10-20T08:00:00Z');
    const { body } = await page.open(provider.path);
    expect(buttonsOf(body).map(({ name }) => name.replace('Sunday, 26 October 2031, ', ''))).toEqual([
      '02:00 (UTC+2) – 02:30 (UTC+2)',
      '02:30 (UTC+2) – 02:00 (UTC+1)',
      '02:00 (UTC+1) – 02:30 (UTC+1)',
      '02:30 (UTC+1) – 03:00 (UTC+1)',
    ]);
    expect(textOf(body)).toContain('(UTC+2 – UTC+1)');
    const { answer } = await choose(page, provider.path, '02:00 (UTC+1) – 02:30');
    expect(textOf(answer.body)).toContain('02:00 (UTC+1) – 02:30 (UTC+1)');
  });
});

describe('a second time zone', () => {
  it('adds its times, with the day if it is another one', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T05:30', '2031-06-02T06:30');
    const { body } = await page.open(`${provider.path}?zone=America/New_York`);
    expect(buttonsOf(body).map(({ name }) => name)).toEqual([
      `${week}, 05:30–06:00 Sun 23:30 – Mon 00:00`,
      `${week}, 06:00–06:30 00:00–00:30`,
    ]);
    expect(textOf(body)).toContain('In small print: Eastern Daylight Time (UTC−4).');
    expect(await accessibilityFindings(body)).toEqual([]);
    const { answer } = await choose(page, `${provider.path}?zone=America/New_York`, '06:00–06:30');
    expect(textOf(answer.body)).toContain(
      `${week} 06:00–06:30 Central European Summer Time (UTC+2) ${week}, 00:00–00:30, Eastern Daylight Time (UTC−4)`,
    );
  });

  it.each(['Europe/Berlin', 'Mars/Base', '+02:00', '', 'a'.repeat(1_000), 'UTC%00'])(
    '%s adds nothing',
    async (zone) => {
      const provider = await openPageOf(page);
      await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
      const { status, body } = await page.open(`${provider.path}?zone=${zone}`);
      expect(status).toBe(200);
      expect(body).not.toContain('<small>');
    },
  );
});

describe('choosing a time', () => {
  it('holds it, and shows the form', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { body } = await page.open(provider.path);
    const { status, location } = await press(page, body, '10:00–10:30');
    expect(status).toBe(303);
    expect(location).toMatch(
      new RegExp(`^${provider.path}/form/[\\da-f-]{36}\\?offer=massage&at=ada&slot=2031-06-02T08%3A00%3A00\\.000Z$`),
    );
    const form = await page.open(location!);
    expect([form.status, form.heading]).toEqual([200, 'Your details']);
    const text = textOf(form.body);
    expect(text).toContain(
      `What Massage <deep> When ${week} 10:00–10:30 Central European Summer Time (UTC+2) Where Lange Straße 1 10115 Berlin With Ada Praxis <Blum> Price €45.00`,
    );
    expect(text).toMatch(/Held for you until 10:0[2-4]\./);
    expect(text).toContain('Name Email address Message to Praxis <Blum> (optional)');
    expect(buttonsOf(form.body).map(({ name }) => name)).toEqual(['Book']);
    expect(form.body).toMatch(/<input id="name"[^>]* autocomplete="name"[^>]* required/);
    expect(form.body).toMatch(/<input id="email"[^>]* type="email"[^>]* autocomplete="email"/);
    expect(form.body).toContain(' novalidate>');
    expect(await accessibilityFindings(form.body)).toEqual([]);
    // Others do not see it any more.
    const others = buttonsOf((await page.open(provider.path)).body);
    expect(others.map(({ name }) => name)).toEqual([`${week}, 10:30–11:00`]);
  });

  it('of a request holds nothing', async () => {
    const provider = await openPageOf(page, { confirmation: Confirmation.REQUESTED });
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { answer } = await choose(page, provider.path, '10:00–10:30');
    const text = textOf(answer.body);
    expect(text).toContain('This is a request. It becomes a booking once it has been confirmed.');
    expect(text).not.toMatch(/[Hh]eld/);
    expect(buttonsOf(answer.body).map(({ name }) => name)).toEqual(['Send request']);
    expect(buttonsOf((await page.open(provider.path)).body)).toHaveLength(2);
  });

  it('again shows the one that is held, and another choice releases it', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { answer } = await choose(page, provider.path, '10:00–10:30');
    const back = linksOf(answer.body).get('Choose another time')!;
    expect(back).toMatch(/\?offer=massage&date=2031-06-02&choice=[\da-f-]{36}$/);
    const again = await page.open(back);
    expect(buttonsOf(again.body).map(({ name }) => name)).toEqual([`${week}, 10:00–10:30`, `${week}, 10:30–11:00`]);
    const other = await press(page, again.body, '10:30–11:00');
    expect(other.status).toBe(303);
    expect(buttonsOf((await page.open(provider.path)).body).map(({ name }) => name)).toEqual([`${week}, 10:00–10:30`]);
  });

  it('that has just been taken shows the nearest ones, which can be chosen, and its week', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    await offerTimes(page, provider, '2031-06-12T10:00', '2031-06-12T11:00');
    const { body } = await page.open(provider.path);
    await choose(page, provider.path, '10:00–10:30');
    const taken = await press(page, body, '10:00–10:30');
    expect([taken.status, taken.heading]).toEqual([409, 'Massage &lt;deep&gt;']);
    expect(taken.body).toContain('<title>Error: Choose a time: Massage &lt;deep&gt;</title>');
    expect(taken.body).toMatch(
      /<div class="note error" role="alert" tabindex="-1" autofocus>\s*<h2>This time is no longer available</,
    );
    expect(buttonsOf(taken.body).map(({ name }) => name)).toEqual([
      `${day}, 10:30–11:00`,
      'Thursday 12 June, 10:00–10:30',
      'Thursday 12 June, 10:30–11:00',
      `${week}, 10:30–11:00`,
    ]);
    expect(await accessibilityFindings(taken.body)).toEqual([]);
    expect((await press(page, taken.body, 'Thursday 12 June, 10:00')).status).toBe(303);
    // The other language has no form to repeat, only the week.
    const german = await page.open(linksOf(taken.body).get('Deutsch')!);
    expect([german.status, german.heading]).toEqual([200, 'Massage &lt;deep&gt;']);
    // And whoever opens the address itself begins again.
    expect((await page.open(`${provider.path}/hold`)).location).toBe(provider.path);
  });

  it.each(['1970-01-01T00:00:00.000Z', '9998-12-31T23:00:00.000Z', '2031-05-01T08:00:00.000Z'])(
    'that nobody can book, %s, is answered as one that is taken',
    async (slot) => {
      const provider = await openPageOf(page);
      await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
      const { status } = await page.open(`${provider.path}/hold`, { form: { offer: 'massage', slot } });
      expect(status).toBe(409);
    },
  );

  it('without a time, or with what is none, begins again', async () => {
    const { path } = await openPageOf(page);
    for (const form of [
      {},
      { offer: 'massage' },
      { offer: 'massage', slot: 'noon' },
      { offer: 'massage', slot: '1969-12-31T00:00:00.000Z' },
      { offer: 'massage', slot: '9999-12-31T23:00:00.000Z' },
      { slot: '2031-06-02T08:00:00.000Z' },
    ]) {
      const { status, location } = await page.open(`${path}/hold?lang=de`, { form: form as Record<string, string> });
      expect([status, location]).toEqual([303, `${path}?lang=de`]);
    }
  });

  it('of an offer that there is no more shows those that there are', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { body } = await page.open(provider.path);
    const { location } = await choose(page, provider.path, '10:00–10:30');
    await changeRules(page, provider, { offers: { offers: [yoga] } });
    const gone = await press(page, body, '10:30–11:00');
    expect([gone.status, gone.heading]).toEqual([409, 'Book an appointment']);
    expect(await accessibilityFindings(gone.body)).toEqual([]);
    const form = await page.open(location);
    expect([form.status, form.heading]).toEqual([200, 'Book an appointment']);
    // What was typed for the provider can be copied.
    const message = '\n<b>Second</b> floor?';
    const sent = await page.open(location, { form: { ...person, message } });
    expect([sent.status, sent.heading]).toEqual([409, 'Book an appointment']);
    expect(sent.body).toContain('readonly dir="auto">\n\n&lt;b&gt;Second&lt;/b&gt; floor?</textarea>');
    expect(textOf(sent.body)).toContain('Your message, to copy');
    expect(await accessibilityFindings(sent.body)).toEqual([]);
  });
});

describe('the form', () => {
  /** A form of a time that is held. */
  async function openForm(rules: Parameters<typeof openPageOf>[1] = {}, query = '') {
    const provider = await openPageOf(page, rules);
    const timeslotReference = await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
    const { answer, location } = await choose(page, provider.path + query, '10:00–10:30');
    return { provider, location, body: answer.body, timeslotReference };
  }

  it('books, says what, and links to the page of the booking', async () => {
    const { provider, body, location: form } = await openForm();
    const typed = { ...person, name: '  Grace   Hopper ', message: 'Second floor?\r\nThank you' };
    const { status, location } = await press(page, body, 'Book', typed);
    expect([status, location]).toEqual([303, expect.stringMatching(new RegExp(`^${provider.path}/done/[\\w-]+$`))]);
    const done = await page.open(location!);
    expect([done.status, done.heading]).toEqual([200, 'Booked']);
    const text = textOf(done.body);
    expect(text).toMatch(/We look forward to seeing you\. We have sent an email to \S*g\S*@\S+\./);
    expect(text).toContain(`What Massage <deep> When ${week} 10:00–10:30`);
    expect(text).toContain('With Ada Praxis <Blum> hello@blum.example');
    expect(text).toContain('Name Grace Hopper');
    expect(done.body).not.toContain('grace@example.com');
    expect(done.body).toMatch(/href="\/base\/booking\/[\w-]+" target="_blank" rel="noopener">See, move or cancel/);
    expect(await accessibilityFindings(done.body)).toEqual([]);
    const links = linksOf(done.body);
    const booking = await page.open(links.get('See, move or cancel (opens in a new tab)')!);
    expect([booking.status, booking.heading]).toEqual([200, 'Your booking is confirmed']);
    const file = await page.open(links.get('Add to my calendar (opens in a new tab)')!);
    expect(file.body).toContain('SUMMARY:Massage <deep>');
    expect(await participationsOf(page, provider)).toMatchObject([
      { state: 'BOOKED', name: 'Grace Hopper', note: 'Second floor?\nThank you' },
    ]);
    // Whoever sends it again is led there, too. The address of the form says nothing of who has booked.
    expect((await press(page, body, 'Book', typed)).location).toBe(location);
    const again = await page.open(form);
    expect([again.status, again.heading]).toEqual([200, 'This form has already been sent']);
    expect(linksOf(again.body).get('Back to the booking page')).toBe(provider.path);
    expect(await accessibilityFindings(again.body)).toEqual([]);
    const other = await press(page, body, 'Book', { ...typed, email: 'ada@example.com' });
    expect([other.status, other.body]).toEqual([409, again.body]);
    expect(again.body).not.toMatch(/Hopper|grace|booking\/[\w-]{20}/);
  });

  it.each(['Win a prize at https://evil.example', 'evil.com', 'Grace '.repeat(11)])(
    'has a name that could not be a message to somebody else: %s',
    async (name) => {
      const { body } = await openForm();
      const refused = await press(page, body, 'Book', { ...person, name });
      expect([refused.status, refused.heading]).toEqual([400, 'Your details']);
      expect(textOf(refused.body)).toMatch(
        /The name may have at most 60 characters|Enter your name, without web addresses/,
      );
    },
  );

  it('is in German, too, and so is the person', async () => {
    const { body, provider } = await openForm({ askMobile: AskMobile.OPTIONAL }, '?lang=de');
    expect(textOf(body)).toContain(
      'Name E‑Mail-Adresse Mobilnummer (freiwillig) Nachricht an Praxis <Blum> (freiwillig)',
    );
    expect(textOf(body)).toMatch(/Für Sie freigehalten bis 10:0\d Uhr\./);
    expect(await accessibilityFindings(body)).toEqual([]);
    const { location } = await press(page, body, 'Buchen', person);
    const done = await page.open(location!);
    expect(done.heading).toBe('Gebucht');
    expect(await accessibilityFindings(done.body)).toEqual([]);
    const headers = { 'accept-language': 'fr' };
    const token = linksOf(done.body).get('Ansehen, verschieben oder stornieren (öffnet einen neuen Tab)')!;
    expect((await page.open(token.replace('?lang=de', ''), { headers })).body).toContain('<html lang="de">');
    expect(await participationsOf(page, provider)).toHaveLength(1);
  });

  it('of a request sends one', async () => {
    const { provider, body } = await openForm({ confirmation: Confirmation.REQUESTED });
    const { location } = await press(page, body, 'Send request', person);
    const done = await page.open(location!);
    expect(done.heading).toBe('Request sent');
    expect(linksOf(done.body).has('Add to my calendar (opens in a new tab)')).toBe(false);
    expect(await participationsOf(page, provider)).toMatchObject([{ state: 'REQUESTED' }]);
    expect(await accessibilityFindings(done.body)).toEqual([]);
  });

  it('has no link if the rules say so', async () => {
    const { body } = await openForm({ selfService: false });
    const { location } = await press(page, body, 'Book', person);
    const done = await page.open(location!);
    expect([done.status, done.heading]).toEqual([200, 'Booked']);
    expect(done.body).not.toContain('/booking/');
  });

  it('sent twice books once', async () => {
    const { provider, body } = await openForm();
    const answers = await Promise.all([press(page, body, 'Book', person), press(page, body, 'Book', person)]);
    answers.push(await press(page, body, 'Book', person));
    expect(new Set(answers.map(({ status, location }) => `${status} ${location}`)).size).toBe(1);
    expect(await participationsOf(page, provider)).toHaveLength(1);
  });

  it('that is invalid asks again with everything that was typed, and links each problem to its field', async () => {
    const { provider, body } = await openForm({ askMobile: AskMobile.REQUIRED });
    const typed = { name: ' \u3164', email: '<b>ada@', mobile: '', message: `\n<i>"&${'🙂'.repeat(500)}` };
    const again = await press(page, body, 'Book', typed);
    expect([again.status, again.heading]).toEqual([400, 'Your details']);
    expect(again.body).toContain('<title>Error: Your details</title>');
    expect(again.body).toMatch(/<h1>.*<\/h1>\s*<div class="note error" role="alert" tabindex="-1" autofocus>/);
    expect([...linksOf(again.body)].filter(([, href]) => href.startsWith('#'))).toEqual([
      ['Enter your name', '#name'],
      ['Enter an email address in the correct format, like name@example.com', '#email'],
      ['Enter your mobile number', '#mobile'],
      ['The message may have at most 500 characters', '#message'],
    ]);
    for (const field of ['name', 'email', 'mobile', 'message']) {
      const [element = ''] = new RegExp(`<(?:input|textarea) id="${field}"[^>]*>`).exec(again.body) ?? [];
      expect(element).toContain('aria-invalid="true"');
      expect(element).toMatch(new RegExp(`aria-describedby="${field}-problem`));
      expect(again.body).toContain(`id="${field}-problem"`);
    }
    expect(fieldsOf(again.body)).toMatchObject(typed);
    expect(await accessibilityFindings(again.body)).toEqual([]);
    const german = await press(page, body, 'Book', typed, { 'accept-language': 'de' });
    expect(german.body).toContain('<title>Fehler: Ihre Angaben</title>');
    expect(german.body).toContain('>Geben Sie Ihren Namen ein</a>');
    expect((await participationsOf(page, provider)).map(({ state }) => state)).toEqual(['RESERVED']);
    const corrected = await press(page, again.body, 'Book', { ...person, mobile: '+44 7700 900123', message: 'x' });
    expect(corrected.status).toBe(303);
  });

  it.each([
    { field: 'name', value: 'a'.repeat(256) },
    {
      field: 'email',
      value: `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}`,
    },
    { field: 'mobile', value: '1'.repeat(256) },
  ])('refuses a $field that is too long', async ({ field, value }) => {
    const { body } = await openForm({ askMobile: AskMobile.OPTIONAL });
    const again = await press(page, body, 'Book', { ...person, [field]: value });
    expect(again.status).toBe(400);
    expect([...linksOf(again.body)].filter(([, href]) => href.startsWith('#'))).toHaveLength(1);
    expect(again.body).toContain(`href="#${field}"`);
  });

  it('asks for no mobile number, and stores none, unless the rules say so', async () => {
    const { body, provider } = await openForm();
    expect(body).not.toContain('mobile');
    expect((await press(page, body, 'Book', { ...person, mobile: '+44 7700 900123' })).status).toBe(303);
    const [booked] = await participationsOf(page, provider);
    expect(JSON.stringify(booked)).not.toContain('7700');
  });

  it('books after the hold is over, as long as the place is free', async () => {
    const { body, location } = await openForm();
    await setClock(page, '2031-05-28T08:20:00Z');
    const form = await page.open(location);
    expect(textOf(form.body)).toContain('This time is not held for you: somebody else may book it before you do.');
    expect((await press(page, body, 'Book', person)).status).toBe(303);
  });

  it('of a time that was taken meanwhile keeps everything, and the nearest times book at once', async () => {
    const { provider, body, location } = await openForm({ offers: { offers: [{ ...yoga, duration: 30 }] } });
    await setClock(page, '2031-05-28T08:20:00Z');
    const other = await choose(page, provider.path, '10:00–10:30');
    expect((await press(page, other.answer.body, 'Book', { ...person, email: 'other@example.com' })).status).toBe(303);

    const typed = { ...person, message: 'Second floor?' };
    const taken = await press(page, body, 'Book', typed);
    expect([taken.status, taken.heading]).toEqual([409, 'Your details']);
    expect(taken.body).toContain('<title>Error: Your details</title>');
    expect(textOf(taken.body)).toContain('This time is no longer available Everything you have typed is still here.');
    expect(fieldsOf(taken.body)).toMatchObject(typed);
    expect(buttonsOf(taken.body).map(({ name }) => name)).toEqual(
      ['10:30–11:00', '11:00–11:30', '11:30–12:00'].map((time) => `Book ${day}, ${time} (Ada)`),
    );
    // No line ends between the day and its month.
    expect(taken.body).toContain('Book Monday 2\u00A0June, ');
    // Enter in a field must not book the first of them.
    expect(taken.body).toMatch(/<form [^>]*>\s*<input type="hidden"[^>]*>\s*<button disabled hidden><\/button>/);
    expect(await accessibilityFindings(taken.body)).toEqual([]);

    const shown = await page.open(location);
    expect([shown.status, shown.heading]).toEqual([409, 'Yoga']);
    expect(buttonsOf(shown.body)[0]!.name).toBe(`${day}, 10:30–11:00 (Ada)`);

    // What is wrong with a field is said with the time that was chosen then.
    const invalid = await press(page, taken.body, '11:00–11:30', { email: '' });
    expect(invalid.status).toBe(400);
    expect(textOf(invalid.body)).toContain(`When ${week} 11:00–11:30`);
    const booked = await press(page, invalid.body, 'Book', { email: person.email });
    expect(booked.status).toBe(303);
    expect(textOf((await page.open(booked.location!)).body)).toContain(`When ${week} 11:00–11:30`);
    // The first choice stays one booking, whichever button is pressed.
    expect((await press(page, taken.body, '11:30–12:00')).location).toBe(booked.location);
    expect((await participationsOf(page, provider)).filter(({ state }) => state === 'BOOKED')).toHaveLength(2);
  });

  it('of the last time, which was taken meanwhile, keeps everything and names phone and mail', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T10:30');
    const { answer } = await choose(page, provider.path, '10:00–10:30');
    await setClock(page, '2031-05-28T08:20:00Z');
    const other = await choose(page, provider.path, '10:00–10:30');
    expect((await press(page, other.answer.body, 'Book', { ...person, email: 'other@example.com' })).status).toBe(303);
    const taken = await press(page, answer.body, 'Book', { ...person, message: 'Second floor?' });
    expect([taken.status, taken.heading]).toEqual([409, 'Your details']);
    expect(textOf(taken.body)).toContain('This time is no longer available There is no other time near it.');
    expect(textOf(taken.body)).toContain('Please contact Praxis <Blum>: hello@blum.example');
    expect(fieldsOf(taken.body)).toMatchObject({ ...person, message: 'Second floor?' });
    expect(buttonsOf(taken.body).map(({ name }) => name)).toEqual(['Book']);
    expect(await accessibilityFindings(taken.body)).toEqual([]);
  });

  it('sent by many for the same place books it once, and gives all others times that book', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T14:00');
    const forms: string[] = [];
    for (let count = 0; count < 8; count += 1) {
      forms.push((await choose(page, provider.path, '10:00–10:30')).answer.body);
      // The hold of the one before is over.
      await setClock(page, `2031-05-28T08:${10 + 4 * count}:00Z`);
    }
    const people = forms.map((_, index) => ({ name: 'Grace', email: `grace-${index}@example.com` }));
    const answers = await Promise.all(
      forms.map((body, index) => whenServed(() => press(page, body, 'Book', people[index]))),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    const others = answers.filter(({ status }) => status === 409);
    expect(others).toHaveLength(7);
    // One after the other, they choose the last time that they were shown, which one of them gets.
    const later = await Promise.all(
      others.map(({ body }, index) => whenServed(() => press(page, body, buttonsOf(body)[index % 6]!.name))),
    );
    expect(later.filter(({ status }) => status === 303)).toHaveLength(6);
    expect((await participationsOf(page, provider)).filter(({ state }) => state === 'BOOKED')).toHaveLength(7);
  });

  it('asks again if the price has changed', async () => {
    const { provider, body } = await openForm();
    await setClock(page, '2031-05-28T08:20:00Z');
    await changeRules(page, provider, { offers: { offers: [{ ...massage, price: { value: 50, currency: 'EUR' } }] } });
    const changed = await press(page, body, 'Book', person);
    expect([changed.status, changed.heading]).toEqual([409, 'Your details']);
    expect(textOf(changed.body)).toContain('The price has changed in the meantime It is €50.00 now.');
    expect(textOf(changed.body)).toContain('Price €50.00');
    expect(fieldsOf(changed.body)).toMatchObject(person);
    expect(await accessibilityFindings(changed.body)).toEqual([]);
    expect((await press(page, changed.body, 'Book')).status).toBe(303);
  });

  it('of another site books nothing', async () => {
    const { provider, body } = await openForm();
    const foreign: Record<string, string>[] = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }];
    for (const headers of foreign) {
      const { status, heading, body: refused } = await press(page, body, 'Book', person, headers);
      expect([status, heading]).toEqual([403, 'Nothing was booked']);
      expect(await accessibilityFindings(refused)).toEqual([]);
    }
    expect((await participationsOf(page, provider)).map(({ state }) => state)).toEqual(['RESERVED']);
  });

  it('without the place that its address names begins again', async () => {
    const { provider, location } = await openForm();
    for (const address of [location.split('?')[0]!, location.replace(/slot=[^&]*/, 'slot=noon')])
      expect((await page.open(address)).location).toBe(provider.path);
  });
});

describe('the page of what is booked', () => {
  it('is not there for the address of the form, before and after it was sent', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { answer, location } = await choose(page, provider.path, '10:00–10:30');
    const done = location.replace('/form/', '/done/').split('?')[0]!;
    expect((await page.open(`${done}?lang=de`)).heading).toBe('Diese Seite ist nicht mehr verfügbar');
    const before = await page.open(done);
    expect([before.status, before.heading]).toEqual([404, 'This page is no longer available']);
    expect(textOf(before.body)).toContain('If you have booked, all details are in the email');
    expect(linksOf(before.body).get('Back to the booking page')).toBe(provider.path);
    expect(await accessibilityFindings(before.body)).toEqual([]);
    await press(page, answer.body, 'Book', person);
    expect((await page.open(done)).status).toBe(404);
  });

  it('shows the booking as it is now', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T11:00');
    const { answer } = await choose(page, provider.path, '10:00–10:30');
    const { location } = await press(page, answer.body, 'Book', person);
    const [{ reference }] = (await participationsOf(page, provider)) as unknown as [{ reference: string }];
    await page.participations.updateParticipation({
      crmId: provider.crmId,
      providerReference: provider.providerReference,
      participationReference: reference,
      state: ParticipationState.CANCELED,
      ignoreCapacity: false,
      sendMails: false,
    });
    const done = await page.open(location!);
    expect([done.status, done.heading]).toEqual([200, 'Cancelled']);
    expect(done.body).toContain(`${basePath}/booking/`);
  });
});
