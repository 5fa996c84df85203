/**
 * The booking page of a provider in Chromium, of a whole stack: what axe and measurements find in each of its states, at three widths, in light and dark, in both
 * languages; that somebody books by keyboard alone, with script and without it, and in a frame of another site; and that there is one booking, whatever is
 * pressed, reloaded or raced for.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Frame, Page } from 'puppeteer-core';
import puppeteer from 'puppeteer-core';
import { createCertificateAuthority } from '../../libs/testing/src/certificates.ts';
import { inspectPage, takePrint } from './inspect-page.ts';
import { autofocusedOf, focusedOf, follow, headingOf, typeInto } from './keyboard.ts';
import {
  address,
  becomeSomebodyElse,
  createProvider,
  dateIn,
  findInMails,
  newAddress,
  type PagesUnderTest,
  startPages,
  withPage,
} from './start-pages.ts';

const languages = ['de', 'en'] as const;
type Language = (typeof languages)[number];

const [ida, jo] = [
  { resourceReference: 'ida@crm', name: 'Ida' },
  { resourceReference: 'jo@crm', name: 'Jo' },
];
const massage = {
  productReference: 'massage@crm',
  name: 'Massage',
  duration: 60,
  price: { value: 75, currency: 'EUR' },
  resources: [ida, jo],
};
const consultation = { productReference: 'consultation@crm', name: 'Beratung', duration: 30, resources: [ida] };

/** What the buttons of times are called. */
const aTime = /\d:\d\d/;

interface BookingPage {
  /** Its provider in the API. */
  path: string;
  url: string;
}

let pages: PagesUnderTest;
/** It can be booked there at once. */
let studio: BookingPage;

before(async () => {
  pages = await startPages();
  studio = await openBookingPage('studio', { askMobile: 'OPTIONAL', embedOn: ['https://studio.example'] });
});

after(() => pages?.[Symbol.asyncDispose]());

/** Creates a provider with a booking page, and with times on three days unless there are to be none. */
async function openBookingPage(name: string, rules: object = {}, days = [3, 4, 5, 30]): Promise<BookingPage> {
  const path = await createProvider(pages, name);
  const timeslots = days.flatMap((day) =>
    [ida, jo].map(({ resourceReference }) => ({
      reference: `${name}-${day}-${resourceReference}`,
      resourceReference,
      start: `${dateIn(day)}T${resourceReference === 'jo@crm' ? '09:00' : '08:00'}`,
      end: `${dateIn(day)}T18:00`,
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: 'BOOKABLE',
      address,
    })),
  );
  if (timeslots.length > 0) await pages.send('POST', `${path}/timeslots`, { timeslots });
  const offers = [massage, consultation];
  const given = { page: true, offers, ...rules };
  const { bookingRules } = await pages.send('PUT', `${path}/booking-rules`, given);
  return { path, url: bookingRules.pageUrl };
}

/** Opens an address with more in its query. */
async function open(page: Page, url: string, query: Record<string, string>, status = 200): Promise<void> {
  const response = await page.goto(withQuery(url, query));
  assert.equal(response!.status(), status, page.url());
}

function withQuery(url: string, query: Record<string, string>): string {
  const full = new URL(url);
  for (const [name, value] of Object.entries(query)) full.searchParams.set(name, value);
  return full.href;
}

/** Presses the first link or button with this name, and waits for the page that it leads to. */
async function press(page: Page | Frame, name: RegExp, status = 200): Promise<void> {
  const [response] = await Promise.all([page.waitForNavigation(), click(page, name)]);
  assert.equal(response!.status(), status, page.url());
}

function click(page: Page | Frame, name: RegExp): Promise<void> {
  return page.evaluate((source) => {
    const isNamed = (element: Element): boolean => new RegExp(source).test(element.textContent);
    [...document.querySelectorAll<HTMLElement>('a, button:not([disabled])')].find(isNamed)!.click();
  }, name.source);
}

async function fill(page: Page | Frame, fields: Record<string, string>): Promise<void> {
  for (const [id, text] of Object.entries(fields))
    await page.$eval(`#${id}`, (field, text) => void ((field as HTMLInputElement).value = text), text);
}

/** Chooses the first time, so that the form is open. */
async function choose(page: Page, { url }: BookingPage, query: Record<string, string>): Promise<void> {
  await open(page, url, { offer: consultation.productReference, ...query });
  await press(page, aTime);
}

/** Opens the form of the first time, of somebody for whom nothing is held. */
async function openWithoutHold(page: Page, { url }: BookingPage, query: Record<string, string>): Promise<void> {
  const wish = { offer: consultation.productReference, with: ida.resourceReference, ...query };
  await open(page, url, wish);
  const slot = await page.$eval('.times button', ({ value }) => value);
  await open(page, `${url}/form/${randomUUID()}`, { ...wish, at: wish.with, slot });
}

/** Books, for others, everything that is free at a time. */
async function takePlaces({ path }: BookingPage, start: string, duration: number): Promise<void> {
  const end = Temporal.Instant.from(start).add({ minutes: duration }).toString();
  const query = new URLSearchParams({ from: start, to: end, duration: String(duration) });
  const slots: { timeslotReference: string; start: string }[] = await pages.send('GET', `${path}/slots?${query}`);
  // Temporal writes no milliseconds where there are none, and neither does the API.
  const from = Temporal.Instant.from(start).toString();
  for (const { timeslotReference } of slots.filter((slot) => slot.start === from))
    await pages.send('POST', `${path}/bookings?sendMails=false`, {
      reference: randomUUID(),
      timeslotReference,
      start,
      duration,
      productReference: 'other@crm',
      customer: { customerReference: randomUUID(), userName: 'Somebody else' },
      state: 'BOOKED',
    });
}

/** Invites a customer of their own to book the consultation once, and returns the address of the page for them. */
async function invite({ path }: BookingPage, userName = 'Grace Hopper'): Promise<string> {
  const customerReference = randomUUID();
  const providerReference = path.split('/').at(-1);
  const person = { customerReference, providerReference, userName, email: `${customerReference}@example.com` };
  await pages.send('POST', `${path}/customers`, person);
  const expiresAt = `${dateIn(20)}T12:00`;
  const wish = { productReference: consultation.productReference, bookings: 1, expiresAt };
  return (await pages.send('POST', `${path}/customers/${customerReference}/invitations`, wish)).invitation.url;
}

interface Participation {
  name: string;
  state: string;
}

/** What the CRM knows of somebody's bookings with a provider. */
async function bookingsOf({ path }: BookingPage, name: string): Promise<string[]> {
  const appointments: { participations: Participation[] }[] = await pages.send('GET', `${path}/appointments`);
  const all = appointments.flatMap(({ participations }) => participations);
  return all.filter((each) => each.name === name).map(({ state }) => state);
}

describe('each state of the booking page', () => {
  let requests: BookingPage;
  let empty: BookingPage;
  let verified: BookingPage;
  let nothing: BookingPage;
  let invited: BookingPage;
  before(async () => {
    requests = await openBookingPage('requests', { confirmation: 'REQUESTED', askMobile: 'REQUIRED' });
    empty = await openBookingPage('empty', {}, []);
    verified = await openBookingPage('verified', { verifyEmail: true });
    nothing = await openBookingPage('nothing', { offers: [] }, []);
    invited = await openBookingPage('invited', { access: 'INVITED' });
  });

  const offer = massage.productReference;
  const person = { name: 'Grace Hopper', email: 'grace@example.com' };
  const zone = 'America/New_York';

  /** By name: how to get there. */
  const states: Record<string, (page: Page, lang: Language) => Promise<void>> = {
    offers: (page, lang) => open(page, studio.url, { lang }),
    'offer-gone': (page, lang) => open(page, studio.url, { lang, offer: 'none' }),
    'no-offers': (page, lang) => open(page, nothing.url, { lang }),
    week: (page, lang) => open(page, studio.url, { lang, offer }),
    'week-of-one': (page, lang) => open(page, studio.url, { lang, offer, with: jo.resourceReference }),
    'week-in-two-zones': (page, lang) => open(page, studio.url, { lang, offer, zone }),
    'empty-week': (page, lang) => open(page, studio.url, { lang, offer, date: dateIn(15) }),
    'no-times': (page, lang) => open(page, empty.url, { lang, offer }),
    'week-taken': async (page, lang) => {
      await open(page, studio.url, { lang, offer });
      await takePlaces(studio, await page.$eval('.times button', ({ value }) => value), massage.duration);
      await press(page, aTime, 409);
    },
    form: (page, lang) => choose(page, studio, { lang, zone }),
    'form-not-held': (page, lang) => openWithoutHold(page, studio, { lang }),
    'form-request': (page, lang) => choose(page, requests, { lang }),
    'form-invalid': async (page, lang) => {
      await choose(page, requests, { lang });
      await fill(page, { email: 'grace@', message: 'Long. '.repeat(100) });
      await press(page, sendButton, 400);
    },
    'form-taken': async (page, lang) => {
      await openWithoutHold(page, studio, { lang, offer });
      await fill(page, { ...person, message: 'The left shoulder.' });
      const { searchParams } = new URL(page.url());
      await takePlaces(studio, searchParams.get('slot')!, massage.duration);
      await press(page, sendButton, 409);
    },
    'form-changed': async (page, lang) => {
      await choose(page, requests, { lang, offer });
      await fill(page, { ...person, mobile: '+49 170 1234567' });
      const price = { value: lang === 'de' ? 80 : 85, currency: 'EUR' };
      await pages.send('PUT', `${requests.path}/booking-rules`, { offers: [{ ...massage, price }, consultation] });
      await press(page, sendButton, 409);
    },
    booked: async (page, lang) => {
      await choose(page, studio, { lang, zone });
      await fill(page, { ...person, email: `${randomUUID()}@example.com` });
      await press(page, sendButton);
    },
    requested: async (page, lang) => {
      await choose(page, requests, { lang });
      await fill(page, { ...person, mobile: '+49 170 1234567', email: `${randomUUID()}@example.com` });
      await press(page, sendButton);
    },
    'open-the-mail': async (page, lang) => void (await sendForMail(page, lang)),
    confirm: async (page, lang) => open(page, await confirmationOf(await sendForMail(page, lang)), { lang }),
    'confirm-taken': async (page, lang) => {
      const email = await sendForMail(page, lang, openWithoutHold);
      await open(page, await confirmationOf(email), { lang });
      const start = await page.$eval('form button', ({ value }) => value.split(' ')[0]!);
      await takePlaces(verified, start, consultation.duration);
      await press(page, sendButton, 409);
    },
    confirmed: async (page, lang) => {
      await open(page, await confirmationOf(await sendForMail(page, lang)), { lang });
      await press(page, sendButton);
    },
    'invited-only': (page, lang) => open(page, invited.url, { lang }, 403),
    'invited-dead': (page, lang) => open(page, invited.url, { lang, for: 'none' }, 404),
    'invited-week': async (page, lang) => open(page, await invite(invited), { lang }),
    'invited-form': async (page, lang) => chooseInvited(page, await invite(invited), lang),
    'invited-booked': async (page, lang) => {
      await chooseInvited(page, await invite(invited), lang);
      await press(page, sendButton);
    },
    'invited-used': async (page, lang) => {
      const url = await invite(invited);
      await chooseInvited(page, url, lang);
      await press(page, sendButton);
      await open(page, url, { lang });
    },
    'done-is-over': (page, lang) => open(page, `${studio.url}/done/${randomUUID()}`, { lang }, 404),
    unknown: (page, lang) => open(page, `${pages.stack.info.page}/book/${randomUUID()}`, { lang }, 404),
  };

  async function chooseInvited(page: Page, url: string, lang: Language): Promise<void> {
    await open(page, url, { lang });
    await press(page, aTime);
  }

  /** Sends a form of which a mail is sent, and returns to whom. */
  async function sendForMail(page: Page, lang: Language, openForm = choose): Promise<string> {
    const email = `${randomUUID()}@example.com`;
    await openForm(page, verified, { lang });
    await fill(page, { ...person, email });
    await press(page, sendButton);
    return email;
  }

  function confirmationOf(email: string): Promise<string> {
    return findInMails(pages, email, (text) => /https?:\/\/\S+\/book\/confirm\/[\w-]+/.exec(text)?.[0]);
  }

  for (const lang of languages) {
    it(`has nothing that axe finds, and fits every screen (${lang})`, async () => {
      await withPage(pages, async (page) => {
        for (const [name, show] of Object.entries(states)) {
          await becomeSomebodyElse(page);
          await show(page, lang);
          assert.deepEqual(await inspectPage(page, `book-${name}-${lang}`), []);
          if (lang === 'de') await takePrint(page, `book-${name}`);
        }
      });
    });
  }
});

const sendButton = /^\s*(Buchen|Book|Anfrage senden|Send request)\s*$|(buchen|anfragen)$|^(Book|Request) /;

const words = {
  de: {
    form: 'Ihre Angaben',
    problems: 'Bitte prüfen Sie Ihre Angaben',
    name: 'Geben Sie Ihren Namen ein',
    send: 'Buchen',
    done: 'Gebucht',
  },
  en: {
    form: 'Your details',
    problems: 'Please check your details',
    name: 'Enter your name',
    send: 'Book',
    done: 'Booked',
  },
} satisfies Record<Language, object>;

describe('a person with a keyboard', () => {
  for (const lang of languages)
    for (const scripts of [true, false]) {
      it(`books, ${scripts ? 'with' : 'without'} script (${lang})`, async () => {
        const said = words[lang];
        const name = `Keyboard ${lang} ${scripts}`;
        await withPage(pages, async (page) => {
          await page.setJavaScriptEnabled(scripts);
          await open(page, studio.url, { lang });
          await follow(page, /^Beratung/);
          await follow(page, aTime);
          assert.equal(await headingOf(page), said.form);
          await typeInto(page, 'email', `keyboard-${lang}-${scripts}`);
          await follow(page, said.send);
          const { tag, name: summary } = await autofocusedOf(page);
          assert.equal(tag, 'DIV');
          assert.ok(summary.startsWith(said.problems), summary);
          await follow(page, said.name);
          assert.equal((await focusedOf(page)).id, 'name');
          await page.keyboard.type(name);
          // What was typed is still there.
          await typeInto(page, 'email', '@example.com');
          await follow(page, said.send);
          assert.equal(await headingOf(page), said.done);
        });
        assert.deepEqual(await bookingsOf(studio, name), ['BOOKED']);
      });
    }
});

describe('a customer who is invited', () => {
  for (const lang of languages)
    it(`books by two presses of a key, without script (${lang})`, async () => {
      const name = `Invited ${lang}`;
      const url = await invite(studio, name);
      await withPage(pages, async (page) => {
        await page.setJavaScriptEnabled(false);
        await open(page, url, { lang });
        await follow(page, aTime);
        assert.deepEqual(await page.$$eval('input:not([type=hidden]), textarea', (all) => all.map(({ id }) => id)), [
          'message',
          'website',
        ]);
        await follow(page, words[lang].send);
        assert.equal(await headingOf(page), words[lang].done);
        await page.goBack();
        await page.reload();
        assert.equal(await page.$('form textarea'), null);
      });
      assert.deepEqual(await bookingsOf(studio, name), ['BOOKED']);
    });
});

describe('a frame', () => {
  let site: Site;
  let framed: PagesUnderTest;
  before(async () => {
    site = await startSite(studio.url);
    const browser = await puppeteer.launch({
      executablePath: process.env['CHROMIUM'] ?? 'chromium',
      acceptInsecureCerts: true,
      args: [
        '--no-sandbox',
        '--test-third-party-cookie-phaseout',
        `--host-resolver-rules=MAP *.example:443 127.0.0.1:${site.port}`,
      ],
    });
    framed = { ...pages, browser };
  });
  after(async () => {
    await framed?.browser.close();
    await site?.[Symbol.asyncDispose]();
  });

  it('of a site that the provider has named is enough to book, without cookies of other sites', async () => {
    const name = 'Framed';
    await withPage(
      framed,
      async (page) => {
        await page.goto('https://studio.example/');
        const frame = await page.waitForFrame((each) => each.url().startsWith(studio.url));
        await frame.waitForSelector('h1');
        // The browser keeps no cookie of a frame.
        assert.equal(await frame.evaluate(setCookie), '');
        await press(frame, /^Beratung/);
        await press(frame, aTime);
        await press(frame, sendButton, 400);
        await fill(frame, { name, email: 'framed@example.com' });
        await press(frame, sendButton);
        assert.match(frame.url(), /\/done\//);
        assert.equal(page.url(), 'https://studio.example/');
        assert.equal(await frame.$eval('h1', ({ textContent }) => textContent), words.en.done);
        const opened = framed.browser.waitForTarget((target) => target.opener() === page.target());
        await click(frame, /move or cancel/);
        const own = await (await opened).page();
        await own!.waitForSelector('h1');
        assert.match(own!.url(), /\/booking\//);
      },
      ['https://studio.example/'],
    );
    assert.deepEqual(await bookingsOf(studio, name), ['BOOKED']);
  });

  it('of another site is empty', async () => {
    await withPage(
      framed,
      async (page) => {
        await page.goto('https://other.example/');
        const [, frame] = page.frames();
        assert.match(frame!.url(), /^chrome-error:/);
      },
      // The browser says, with pictures of its own, that it shows nothing.
      ['https://other.example/', 'data:image/'],
    );
  });
});

/** Sets a cookie as a page in a frame could, and returns those that there are. */
function setCookie(): string {
  document.cookie = 'of=frame; SameSite=None; Secure; Path=/';
  return document.cookie;
}

interface Site extends AsyncDisposable {
  port: number;
}

/** Serves, under every name, a page with a frame. */
async function startSite(src: string): Promise<Site> {
  const authority = await createCertificateAuthority();
  const server = createServer(await authority.issue('studio.example', 'other.example'), (_request, response) => {
    response.setHeader('content-type', 'text/html').end(`<title>Site</title><iframe src="${src}?lang=en"></iframe>`);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('one booking is made', () => {
  /** A form that is filled in. */
  async function openForm(page: Page, name: string): Promise<void> {
    await choose(page, studio, { lang: 'en' });
    await fillAs(page, name);
  }

  function fillAs(page: Page, name: string): Promise<void> {
    return fill(page, { name, email: `${name}@example.com` });
  }

  async function waitForDone(page: Page): Promise<void> {
    await page.waitForFunction(() => location.pathname.includes('/done/'));
    assert.equal(await headingOf(page), words.en.done);
  }

  it('by whoever reloads what is wrong, and what is done', async () => {
    await withPage(pages, async (page) => {
      await choose(page, studio, { lang: 'en' });
      await press(page, sendButton, 400);
      assert.equal((await page.reload())!.status(), 400);
      await fillAs(page, 'reload');
      await press(page, sendButton);
      await page.reload();
      await waitForDone(page);
    });
    assert.deepEqual(await bookingsOf(studio, 'reload'), ['BOOKED']);
  });

  it('by whoever goes back, and sends again', async () => {
    await withPage(pages, async (page) => {
      await openForm(page, 'back');
      await press(page, sendButton);
      await page.goBack();
      // Some browsers show the form that they have kept.
      if (!page.url().includes('/done/')) await press(page, sendButton);
      await waitForDone(page);
    });
    assert.deepEqual(await bookingsOf(studio, 'back'), ['BOOKED']);
  });

  it('by whoever presses twice', async () => {
    await withPage(pages, async (page) => {
      await openForm(page, 'twice');
      const button = await page.waitForSelector('form > button');
      await button!.click({ count: 2 });
      await waitForDone(page);
    });
    assert.deepEqual(await bookingsOf(studio, 'twice'), ['BOOKED']);
  });

  it('by whoever sends the same form in two tabs', async () => {
    await withPage(pages, async (page) => {
      await openForm(page, 'tabs');
      const other = await page.browserContext().newPage();
      await other.goto(page.url());
      await fillAs(other, 'tabs');
      await Promise.all([page, other].map((tab) => press(tab, sendButton)));
      for (const tab of [page, other]) await waitForDone(tab);
    });
    assert.deepEqual(await bookingsOf(studio, 'tabs'), ['BOOKED']);
  });
});

describe('visitors who want the same time', () => {
  const visitors = Array.from({ length: 60 }, (_, index) => index);
  let raced: BookingPage;
  before(async () => {
    raced = await openBookingPage('raced');
  });

  /** Sends a form as a browser on a network of its own would, and again while the page asks to wait. */
  async function post(path: string, form: Record<string, string>, tries = 20): Promise<Response> {
    const answer = await fetch(raced.url + path, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        origin: pages.stack.info.page,
        'x-forwarded-for': newAddress(),
        'accept-language': 'en',
      },
      body: new URLSearchParams(form),
    });
    return answer.status === 503 && tries > 1 ? post(path, form, tries - 1) : answer;
  }

  const { productReference: offer } = consultation;
  const hold = (slot: string): Promise<Response> => post('/hold', { offer, slot });
  const book = (visitor: number, choice: string, slot: string): Promise<Response> => {
    const query = new URLSearchParams({ offer, at: ida.resourceReference, slot });
    const email = `racer-${visitor}@example.com`;
    return post(`/form/${choice}?${query}`, { name: `Racer ${visitor}`, email, price: '' });
  };

  const timesOf = async (answer: Response): Promise<string[]> =>
    [...(await answer.text()).matchAll(/name="slot" value="(\S+Z)[ "]/g)].map(([, start]) => start!);

  async function firstTime(): Promise<string> {
    const [first] = await timesOf(await fetch(`${raced.url}?offer=${encodeURIComponent(offer)}`));
    return first!;
  }

  /** One answer leads on, and all others have other times. */
  async function findWinner(answers: Response[], wanted: string): Promise<number> {
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
    assert.deepEqual(statuses, [303, ...answers.slice(1).map(() => 409)]);
    for (const answer of answers.filter(({ status }) => status === 409)) {
      const times = await timesOf(answer);
      assert.ok(times.length > 0 && !times.includes(wanted), times.join());
    }
    return answers.findIndex(({ status }) => status === 303);
  }

  it('are told of other times, except for the one for whom it is held, who books it', async () => {
    const slot = await firstTime();
    const held = await Promise.all(visitors.map(() => hold(slot)));
    const winner = await findWinner(held, slot);
    const choice = /\/form\/([\da-f-]+)/.exec(held[winner]!.headers.get('location')!)![1]!;
    const sent = await Promise.all(
      visitors.map((visitor) => book(visitor, visitor === winner ? choice : randomUUID(), slot)),
    );
    assert.equal(await findWinner(sent, slot), winner);
    assert.deepEqual(await bookingsOf(raced, `Racer ${winner}`), ['BOOKED']);
  });

  it('are told of times that they can book, when all of them send the form at once', async () => {
    const slot = await firstTime();
    const sent = await Promise.all(visitors.map((visitor) => book(visitor, randomUUID(), slot)));
    const winner = await findWinner(sent, slot);
    for (const loser of visitors.filter((visitor) => visitor !== winner).slice(0, 5)) {
      const refused = await book(loser, randomUUID(), slot);
      const [next] = await timesOf(refused);
      assert.equal((await book(loser, randomUUID(), next!)).status, 303);
    }
  });
});
