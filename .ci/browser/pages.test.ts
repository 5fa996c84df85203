/**
 * The pages for persons in Chromium, of a whole stack: what axe and measurements find on each of them, at three widths, in light and dark, in both languages; and
 * that a booking can be moved and cancelled by keyboard alone, with script and without it. PAGES_SCREENSHOTS names a folder for pictures of all of them.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import puppeteer, { type Browser, type HTTPRequest, type Page } from 'puppeteer-core';
import { createAdminClient } from '../../libs/stack/src/admin-client.ts';
import { startTestStack, type TestStack } from '../../libs/test-stack/src/start-test-stack.ts';

const executablePath = process.env['CHROMIUM'] ?? 'chromium';
const screenshots = process.env['PAGES_SCREENSHOTS'];
const axe = await readFile(join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'), 'utf8');

const widths = [320, 390, 1280];
const schemes = ['light', 'dark'] as const;
const languages = ['de', 'en'] as const;

let stack: TestStack;
let browser: Browser;
/** Sends a request of the CRM and returns the body of the response. */
let send: (method: string, path: string, body?: unknown) => Promise<any>;

const provider = '/provider/practice@crm';
let bookings = 0;

before(async () => {
  // Every page of the tests comes from this machine.
  stack = await startTestStack();
  browser = await puppeteer.launch({ executablePath, args: ['--no-sandbox'] });
  using admin = createAdminClient(stack.info.admin.identity);
  const crmId = 'pages';
  await admin.createCrm({
    crmId,
    name: 'Practices',
    imprint: 'Practices Ltd\nLondon',
    privacyUrl: 'https://example.com/privacy',
    colour: '#7a1f5c',
  });
  const { key } = await admin.createKey({ crmId });
  send = async (method, path, body) => {
    const response = await fetch(`${stack.info.gateway}/crms/${crmId}${path}`, {
      method,
      headers: { 'x-service-client-id': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
  await send('POST', '/user', {
    reference: 'owner@crm',
    email: 'owner@example.com',
    username: 'owner',
    lastName: 'Owner',
  });
  await send('POST', '/account', { ownerReference: 'owner@crm', accountReference: 'account@crm', branch: 'misc' });
  await send('POST', '/provider', {
    reference: 'practice@crm',
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Dr. Müller',
    phone: '+49 30 1234567',
    email: 'practice@example.com',
    impressum: 'Dr. Müller\nHauptstr. 1\n10115 Berlin',
  });
  await send('PUT', `${provider}/booking-rules`, { selfService: true, changeNotice: 120, notifyProvider: true });
  const timeslots = [3, 4, 5].map((days) => ({
    reference: `day-${days}@crm`,
    resourceReference: 'room@crm',
    start: dateIn(days, '08:00'),
    end: dateIn(days, '18:00'),
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'BOOKABLE',
    address: { street: 'Hauptstr.', number: '1', zip: '10115', city: 'Berlin', country: 'DE' },
  }));
  await send('POST', `${provider}/timeslots`, { timeslots });
});

after(async () => {
  await browser?.close();
  await stack?.[Symbol.asyncDispose]();
});

function dateIn(days: number, time: string): string {
  return `${Temporal.Now.zonedDateTimeISO('Europe/Berlin').add({ days }).toPlainDate().toString()}T${time}`;
}

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
async function decisionLinkOf(reference: string): Promise<string> {
  const until = performance.now() + 30_000;
  while (performance.now() < until) {
    const mails: any[] = await (await fetch(`${stack.info.inbox}/api/email`)).json();
    for (const { id } of mails.filter(({ to }) => to[0].address === 'practice@example.com')) {
      const { text } = await (await fetch(`${stack.info.inbox}/api/email/${id}`)).json();
      const link = /https?:\/\/\S+\/decide\/[\w-]+/.exec(text)?.[0];
      if (link !== undefined && text.includes(reference)) return link;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the provider has no mail about ${reference}`);
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

async function stateOf(reference: string): Promise<any> {
  const { participation } = await send('GET', `${provider}/participations/${reference}`);
  const { appointment } = await send('GET', `${provider}/appointments/${participation.appointmentReference}`);
  return { state: participation.state, start: appointment.start };
}

/** Opens a page in a context of its own, and fails on a cookie or a request to another host. */
async function withPage(work: (page: Page) => Promise<void>): Promise<void> {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const foreign: string[] = [];
  page.on('request', (request: HTTPRequest) => {
    if (!request.url().startsWith(stack.info.page)) foreign.push(request.url());
  });
  try {
    await work(page);
    assert.deepEqual(foreign, []);
    assert.deepEqual(await context.cookies(), []);
  } finally {
    await context.close();
  }
}

describe('each page', () => {
  /** By name: its address. */
  const pages = new Map<string, string>();
  before(async () => {
    const booked = await book();
    const requested = await book('REQUESTED');
    const cancelled = await book();
    await send('POST', `${provider}/participations/${cancelled.reference}`, { state: 'CANCELED' });
    const late = await bookLate();
    const decided = await book('REQUESTED');
    const decidedLink = await decisionLinkOf(decided.reference);
    await send('POST', `${provider}/participations/${decided.reference}`, { state: 'CANCELED' });
    pages
      .set('booked', booked.link)
      .set('cancel', `${booked.link}/cancel`)
      .set('attend', `${booked.link}/attend`)
      .set('week', `${booked.link}/move`)
      .set('empty-week', `${booked.link}/move?date=${dateIn(60, '').slice(0, 10)}`)
      .set('confirm', await firstTimeOf(booked.link))
      .set('requested', requested.link)
      .set('cancelled', cancelled.link)
      .set('cancelled-already', `${cancelled.link}/cancel`)
      .set('late', late)
      .set('too-late', `${late}/cancel`)
      .set('decide', await decisionLinkOf(requested.reference))
      .set('decided', decidedLink)
      .set('dead-link', `${booked.link}x`);
    if (screenshots !== undefined) await mkdir(screenshots, { recursive: true });
  });

  for (const language of languages) {
    it(`has nothing that axe finds, and fits every screen (${language})`, async () => {
      for (const [name, address] of pages) {
        await withPage(async (page) => {
          await page.goto(`${address}${address.includes('?') ? '&' : '?'}lang=${language}`);
          for (const width of widths)
            for (const scheme of schemes) {
              await page.setViewport({ width, height: 800, deviceScaleFactor: 1 });
              await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
              const file = `${name}-${language}-${width}-${scheme}.png`;
              if (screenshots !== undefined)
                await page.screenshot({ path: join(screenshots, file) as `${string}.png`, fullPage: true });
              assert.deepEqual(await measure(page), [], file);
              // The content is the same at all widths, and axe takes half a second.
              if (width === widths[0]) assert.deepEqual(await findViolations(page), [], file);
            }
          if (screenshots !== undefined && language === 'de') {
            await page.emulateMediaType('print');
            await page.screenshot({ path: join(screenshots, `${name}-print.png`) as `${string}.png`, fullPage: true });
          }
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

/** What axe reports. */
async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run();
    return violations.map((each: any) => `${each.id}: ${each.nodes.map((node: any) => node.html).join(' ')}`);
  });
}

/** Targets that are too small (WCAG 2.5.8), and a width that needs scrolling (1.4.10). */
function measure(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`${scrollWidth} px wide on a screen of ${clientWidth}`);
    for (const target of document.querySelectorAll('a, button, textarea')) {
      const { width, height } = target.getBoundingClientRect();
      if (width < 24 || height < 24) found.push(`a target of ${width} x ${height} px: ${target.outerHTML}`);
    }
    return found;
  });
}

describe('a person with a keyboard', () => {
  for (const scripts of [true, false]) {
    it(`moves a booking and cancels it, ${scripts ? 'with' : 'without'} script`, async () => {
      const { reference, link } = await book();
      const before = await stateOf(reference);
      await withPage(async (page) => {
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
    await withPage(async (page) => {
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

interface Focused {
  tag: string;
  name: string;
}

/** Presses Tab until the link or button with this name has the focus, then Enter, and waits for the next page. */
async function follow(page: Page, name: string | RegExp): Promise<void> {
  await tabTo(page, (element) => (typeof name === 'string' ? element.name === name : name.test(element.name)));
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
}

async function tabTo(page: Page, isWanted: (element: Focused) => boolean): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < 100; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate((): Focused => {
      const element = document.activeElement!;
      return { tag: element.tagName, name: (element.textContent ?? '').trim().replaceAll(/\s+/g, ' ') };
    });
    if (isWanted(focused)) return;
    seen.push(focused.name);
  }
  assert.fail(`not reached by Tab; reached ${seen.slice(0, 10).join(', ')}`);
}

function headingOf(page: Page): Promise<string> {
  return page.evaluate(() => document.querySelector('h1')!.textContent!.trim());
}
