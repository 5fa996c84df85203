/** A whole stack with a CRM of its own, and a browser. */
import assert from 'node:assert/strict';
import puppeteer, { type Browser, type LaunchOptions, type Page } from 'puppeteer-core';
import { createAdminClient } from '../../libs/stack/src/admin-client.ts';
import { startTestStack, type TestStack } from '../../libs/test-stack/src/start-test-stack.ts';

export interface PagesUnderTest extends AsyncDisposable {
  stack: TestStack;
  browser: Browser;
  /** Sends a request of the CRM and returns the body of the response. */
  send: SendRequest;
}

// The CRM's JSON, as a test expects it.
// oxlint-disable-next-line typescript/no-explicit-any
export type SendRequest = (method: string, path: string, body?: unknown) => Promise<any>;

export async function startPages(options: LaunchOptions = {}): Promise<PagesUnderTest> {
  const stack = await startTestStack();
  const executablePath = process.env['CHROMIUM'] ?? 'chromium';
  const browser = await puppeteer.launch({
    executablePath,
    ...options,
    args: ['--no-sandbox', ...(options.args ?? [])],
  });
  const send = await createCrm(stack);
  await send('POST', '/user', {
    reference: 'owner@crm',
    email: 'owner@example.com',
    username: 'owner',
    lastName: 'Owner',
  });
  await send('POST', '/account', { ownerReference: 'owner@crm', accountReference: 'account@crm', branch: 'misc' });
  return {
    stack,
    browser,
    send,
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await stack[Symbol.asyncDispose]();
    },
  };
}

async function createCrm(stack: TestStack): Promise<SendRequest> {
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
  return async (method, path, body) => {
    const response = await fetch(`${stack.info.gateway}/crms/${crmId}${path}`, {
      method,
      headers: { 'x-service-client-id': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
}

/** Creates a provider, and returns its path in the API. */
export async function createProvider({ send }: PagesUnderTest, name: string): Promise<string> {
  await send('POST', '/provider', {
    reference: `${name}@crm`,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Dr. Müller',
    phone: '+49 30 1234567',
    email: `${name}@example.com`,
    impressum: 'Dr. Müller\nHauptstr. 1\n10115 Berlin',
  });
  return `/provider/${name}@crm`;
}

export const address = { street: 'Hauptstr.', number: '1', zip: '10115', city: 'Berlin', country: 'DE' };

/** A date in some days, where the providers are. */
export function dateIn(days: number): string {
  return Temporal.Now.zonedDateTimeISO('Europe/Berlin').add({ days }).toPlainDate().toString();
}

/** Opens a page in a context of its own, and fails on a cookie or a request to another host. */
export async function withPage(
  { stack, browser }: PagesUnderTest,
  work: (page: Page) => Promise<void>,
  permitted: string[] = [],
): Promise<void> {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await becomeSomebodyElse(page);
  const own = [stack.info.page, ...permitted];
  const foreign: string[] = [];
  page.on('request', (request) => {
    if (!own.some((origin) => request.url().startsWith(origin))) foreign.push(request.url());
  });
  try {
    await work(page);
    assert.deepEqual(foreign, []);
    assert.deepEqual(await context.cookies(), []);
  } finally {
    await context.close();
  }
}

let networks = 0;

/** An address that nothing has come from: pages count what does. */
export function newAddress(): string {
  networks += 1;
  return `198.18.${Math.trunc(networks / 256)}.${networks % 256}`;
}

/** From now on, a page is opened from another address, as far as the stack can tell. */
export function becomeSomebodyElse(page: Page): Promise<void> {
  return page.setExtraHTTPHeaders({ 'x-forwarded-for': newAddress() });
}

/** Waits for a mail to an address that has what is searched for. */
export async function findInMails(
  { stack }: PagesUnderTest,
  to: string,
  find: (text: string) => string | undefined,
): Promise<string> {
  const until = performance.now() + 30_000;
  while (performance.now() < until) {
    const mails = (await (await fetch(`${stack.info.inbox}/api/email`)).json()) as {
      id: string;
      to: { address: string }[];
    }[];
    for (const { id } of mails.filter(({ to: [first] }) => first?.address === to)) {
      const { text } = (await (await fetch(`${stack.info.inbox}/api/email/${id}`)).json()) as { text: string };
      const found = find(text);
      if (found !== undefined) return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${to} has no such mail`);
}
