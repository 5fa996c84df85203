/**
 * The pages for persons in Chromium, of a whole stack: what axe and measurements find on each of them, at three widths, in light and dark, in both languages; and
 * that a booking can be moved and cancelled by keyboard alone, with script and without it. PAGES_SCREENSHOTS names a folder for pictures of all of them.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { inspectPage, takePrint } from './inspect-page.ts';
import { follow, headingOf, tabTo } from './keyboard.ts';
import {
  address,
  createProvider,
  dateIn,
  findInMails,
  type PagesUnderTest,
  type SendRequest,
  startPages,
  withPage,
} from './start-pages.ts';

const languages = ['de', 'en'] as const;

let pages: PagesUnderTest;
let send: SendRequest;

const provider = '/provider/practice@crm';
let bookings = 0;

before(async () => {
  pages = await startPages();
  ({ send } = pages);
  await createProvider(pages, 'practice');
  await send('PUT', `${provider}/booking-rules`, { selfService: true, changeNotice: 120, notifyProvider: true });
  const timeslots = [3, 4, 5].map((days) => ({
    reference: `day-${days}@crm`,
    resourceReference: 'room@crm',
    start: `${dateIn(days)}T08:00`,
    end: `${dateIn(days)}T18:00`,
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'BOOKABLE',
    address,
  }));
  await send('POST', `${provider}/timeslots`, { timeslots });
});

after(() => pages?.[Symbol.asyncDispose]());

/** Books the next free place, and returns the reference and the person's link. */
async function book(state = 'BOOKED'): Promise<{ reference: string; link: string }> {
  bookings += 1;
  const reference = `booking-${bookings}@crm`;
  const [slot] = await send('GET', `${provider}/slots?limit=1`);
  await send('POST', `${provider}/bookings`, {
    reference,
    timeslotReference: slot.timeslotReference,
    start: slot.start,
    productReference: 'cut@crm',
    productName: 'Beratung',
    price: { value: 45.5, currency: 'EUR' },
    customer: {
      customerReference: `customer-${bookings}@crm`,
      userName: 'Grace Hopper',
      email: `grace-${bookings}@example.com`,
    },
    state,
  });
  return { reference, link: await linkOf(reference) };
}

async function linkOf(reference: string): Promise<string> {
  return (await send('GET', `${provider}/participations/${reference}/link`)).link.url;
}

/** The link by which the provider decides a request, from its mail. */
function decisionLinkOf(reference: string): Promise<string> {
  return findInMails(pages, 'practice@example.com', (text) =>
    text.includes(reference) ? /https?:\/\/\S+\/decide\/[\w-]+/.exec(text)?.[0] : undefined,
  );
}

/** A booking that begins in an hour, after the change notice. */
async function bookLate(): Promise<string> {
  const start = Temporal.Now.instant().add({ hours: 1 }).round('minute');
  const customerReference = 'late@crm';
  await send('POST', `${provider}/customers`, {
    customerReference,
    providerReference: 'practice@crm',
    userName: 'Grace Hopper',
    email: 'late@example.com',
  });
  await send('POST', `${provider}/appointments`, {
    reference: 'late@crm',
    start: start.toString(),
    end: start.add({ hours: 1 }).toString(),
    capacity: 1,
    resourceReference: 'other-room@crm',
    productReference: 'cut@crm',
  });
  await send('POST', `${provider}/participations`, {
    reference: 'late@crm',
    appointmentReference: 'late@crm',
    customerReference,
    state: 'BOOKED',
  });
  return linkOf('late@crm');
}

async function stateOf(reference: string): Promise<{ state: string; start: string }> {
  const { participation } = await send('GET', `${provider}/participations/${reference}`);
  const { appointment } = await send('GET', `${provider}/appointments/${participation.appointmentReference}`);
  return { state: participation.state, start: appointment.start };
}

describe('each page', () => {
  /** By name: its address. */
  const addresses = new Map<string, string>();
  before(async () => {
    const booked = await book();
    const requested = await book('REQUESTED');
    const cancelled = await book();
    await send('POST', `${provider}/participations/${cancelled.reference}`, { state: 'CANCELED' });
    const late = await bookLate();
    const decided = await book('REQUESTED');
    const decidedLink = await decisionLinkOf(decided.reference);
    await send('POST', `${provider}/participations/${decided.reference}`, { state: 'CANCELED' });
    addresses
      .set('booked', booked.link)
      .set('cancel', `${booked.link}/cancel`)
      .set('attend', `${booked.link}/attend`)
      .set('week', `${booked.link}/move`)
      .set('empty-week', `${booked.link}/move?date=${dateIn(60)}`)
      .set('confirm', await firstTimeOf(booked.link))
      .set('requested', requested.link)
      .set('cancelled', cancelled.link)
      .set('cancelled-already', `${cancelled.link}/cancel`)
      .set('late', late)
      .set('too-late', `${late}/cancel`)
      .set('decide', await decisionLinkOf(requested.reference))
      .set('decided', decidedLink)
      .set('dead-link', `${booked.link}x`);
  });

  for (const language of languages) {
    it(`has nothing that axe finds, and fits every screen (${language})`, async () => {
      for (const [name, link] of addresses) {
        await withPage(pages, async (page) => {
          await page.goto(`${link}${link.includes('?') ? '&' : '?'}lang=${language}`);
          assert.deepEqual(await inspectPage(page, `${name}-${language}`), []);
          if (language === 'de') await takePrint(page, name);
        });
      }
    });
  }
});

/** The address to which the first time of the week leads. */
async function firstTimeOf(link: string): Promise<string> {
  const page = await (await fetch(`${link}/move`)).text();
  const [, path = ''] = /href="([^"]*\/move\/confirm[^"]*)"/.exec(page) ?? [];
  return new URL(path.replaceAll('&amp;', '&'), link).href;
}

describe('a person with a keyboard', () => {
  for (const scripts of [true, false]) {
    it(`moves a booking and cancels it, ${scripts ? 'with' : 'without'} script`, async () => {
      const { reference, link } = await book();
      const before = await stateOf(reference);
      await withPage(pages, async (page) => {
        await page.setJavaScriptEnabled(scripts);
        await page.goto(`${link}?lang=en`);
        await follow(page, 'Move');
        await follow(page, /AM|PM/);
        await follow(page, 'Move the booking');
        assert.equal(await headingOf(page), 'Your booking is confirmed');
        const moved = await stateOf(reference);
        assert.equal(moved.state, 'BOOKED');
        assert.notEqual(moved.start, before.start);
        await follow(page, 'Cancel');
        await tabTo(page, (element) => element.tag === 'TEXTAREA');
        await page.keyboard.type('I am ill.');
        await follow(page, 'Cancel the booking');
        assert.equal(await headingOf(page), 'Cancelled');
        assert.equal((await stateOf(reference)).state, 'CANCELED');
      });
    });
  }
});

describe('a provider with a keyboard', () => {
  it('confirms a request', async () => {
    const { reference } = await book('REQUESTED');
    const link = await decisionLinkOf(reference);
    await withPage(pages, async (page) => {
      await page.setJavaScriptEnabled(false);
      await page.goto(`${link}?lang=en`);
      await tabTo(page, (element) => element.tag === 'TEXTAREA');
      await page.keyboard.type('See you.');
      await follow(page, 'Confirm');
      assert.equal(await headingOf(page), 'Confirmed');
      assert.equal((await stateOf(reference)).state, 'BOOKED');
    });
  });
});
