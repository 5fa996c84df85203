import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { JSDOM } from 'jsdom';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { get, type IncomingMessage, request } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { placeholderLikeKey } from '../src/documentation-page.ts';
import { confirmPage } from '../src/routes/email-verification-page.ts';
import { type GatewayUnderTest, startGateway } from './gateway-under-test.ts';

let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway({ PUBLIC_URL: 'https://scheduling.test/booking' });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** The headers that Chromium sends for a page. */
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';

interface Answer {
  status: number;
  type: string | undefined;
  policy: string | undefined;
  body: string;
}

/** Not `fetch`, which always sends an Accept header. */
function ask(path: string, accept?: string, method = 'GET'): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request(
    gateway.url + path,
    { method, headers: { 'x-request-id': 'r', ...(accept !== undefined && { accept }) } },
    (response) => {
      const { statusCode = 0, headers } = response;
      const { 'content-type': type, 'content-security-policy': policy } = headers;
      text(response).then(
        (body) => resolve({ status: statusCode, type, policy: policy as string | undefined, body }),
        reject,
      );
    },
  )
    .on('error', reject)
    .end();
  return promise;
}

function linksOf(html: string): string[] {
  return [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1]!);
}

describe('a browser', () => {
  it.each(['/', '/?from=mail'])('sees an introduction at %s, with links to the documentation', async (root) => {
    const { status, type, policy, body } = await ask(root, browser);
    expect([status, type]).toEqual([200, 'text/html; charset=utf-8']);
    expect(policy).toContain("default-src 'none'");
    expect(body).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
    expect(linksOf(body)).toEqual([
      '/booking/guides',
      '/booking/docs',
      '/booking/openapi.json',
      '/booking/collection.json',
      '/booking/llms.txt',
      '/booking/readyz',
      '/booking/livez',
    ]);
    for (const link of linksOf(body)) expect((await ask(link.replace('/booking', ''))).status).toBe(200);
    expect(body).toContain('curl https://scheduling.test/booking/crms/$CRM');
    expect(body).toMatch(/Version \d+\.\d+\.\d+/);
  });

  it('sees a page at an unknown address', async () => {
    const { status, type, policy, body } = await ask('/no/where', browser);
    expect([status, type]).toEqual([404, 'text/html; charset=utf-8']);
    expect(policy).toContain("default-src 'none'");
    expect(linksOf(body)).toEqual(['/booking/', '/booking/docs']);
  });

  it('gets every page with the same head except for the title, and with the same policy', async () => {
    const pages = [
      await ask('/', browser),
      await ask('/no/where', browser),
      await ask('/verify-email?token=unknown', browser),
      await ask('/guides', browser),
    ];
    const heads = pages.map(({ body }) => /<head>.*<\/head>/s.exec(body)![0].replace(/<title>.+<\/title>/, ''));
    expect(new Set(heads).size).toBe(1);
    expect(new Set(pages.map(({ policy }) => policy)).size).toBe(1);
  });

  it.each([
    '/',
    '/no/where',
    '/verify-email?token=unknown',
    '/guides',
    '/guides/booking',
    '/guides/production',
    '/guides/interface',
  ])('sees an accessible page at %s', async (path) => {
    expect(await accessibilityFindings((await ask(path, browser)).body)).toEqual([]);
  });

  it('sees an accessible page with the button that verifies an address', async () => {
    const verification = { crmName: 'Acme', userName: 'Ada Lovelace', email: 'ada@acme.example' };
    expect(await accessibilityFindings(confirmPage(verification, { token: 'token', language: 'en' }))).toEqual([]);
  });
});

it('the check of accessibility finds what is wrong', async () => {
  const findings = await accessibilityFindings('<html><head></head><body><img src="x.png"></body></html>');
  expect(findings).toEqual(expect.arrayContaining(['document-title', 'html-has-lang', 'image-alt']));
});

describe('an API client', () => {
  const problem =
    '{"type":"about:blank","title":"Not Found","status":404,"detail":"There is nothing at this address.","instance":"r","code":"route.not_found"}';

  it.each([
    undefined,
    '*/*',
    'application/json',
    'application/json, text/plain, */*',
    'application/problem+json, text/html',
  ])('that accepts %s gets a problem at an unknown address, even at the root', async (accept) => {
    for (const path of ['/', '/no/where']) {
      expect(await ask(path, accept)).toEqual({
        status: 404,
        type: 'application/problem+json; charset=utf-8',
        policy: undefined,
        body: problem,
      });
    }
  });

  it.each([
    { method: 'POST', path: '/' },
    { method: 'DELETE', path: '/no/where' },
    { method: 'GET', path: '/crms/one/no/where' },
  ])('gets a problem at $method $path whatever it accepts', async ({ method, path }) => {
    expect(await ask(path, browser, method)).toMatchObject({ status: 404, body: problem });
  });
});

describe('the documentation', () => {
  it('is readable on a phone and follows the colour scheme of the system', async () => {
    const { body } = await ask('/docs', browser);
    expect(body).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
    expect(body).toContain('<meta name="color-scheme" content="light dark">');
  });

  it('is found with a slash at the end, too', async () => {
    const { status, url } = await fetch(`${gateway.url}/docs/`);
    expect([status, url]).toEqual([200, `${gateway.url}/docs`]);
  });

  it('permits scripts and requests of this origin only, and no inline script but its own', async () => {
    const { body, policy } = await ask('/docs', browser);
    const inline = /<script>(.*)<\/script>/s.exec(body)![1]!;
    const hash = createHash('sha256').update(inline).digest('base64');
    expect(policy!.split('; ')).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        `script-src 'self' 'sha256-${hash}'`,
        "connect-src 'self'",
        "img-src 'self' data:",
      ]),
    );
    expect(linksOf(body)).toEqual(['data:,', 'docs/viewer.js']);
  });

  it('configures the viewer to use no other service, to keep no key, and to send requests to where the page is', async () => {
    const { body } = await ask('/docs', browser);
    const configured: unknown[] = [];
    const { window } = new JSDOM('<div id="app"></div>', {
      url: 'https://proxy.test/booking/docs',
      runScripts: 'outside-only',
    });
    Object.assign(window, { Scalar: { createApiReference: (...values: unknown[]) => configured.push(...values) } });
    window.eval(/<script>(.*)<\/script>/s.exec(body)![1]!);
    expect(configured).toMatchObject([
      '#app',
      {
        url: 'https://proxy.test/booking/openapi.json',
        servers: [{ url: 'https://proxy.test/booking' }],
        telemetry: false,
        agent: { disabled: true },
        mcp: { disabled: true },
        hideClientButton: true,
        withDefaultFonts: false,
        persistAuth: false,
      },
    ]);
    expect(configured[1]).not.toHaveProperty('proxyUrl');
    const field = window.document.createElement('input');
    field.placeholder = `${placeholderLikeKey}QkFTRSBBUkUg`;
    window.document.getElementById('app')!.append(field);
    await vi.waitFor(() => expect(field.placeholder).toBe('Your API key'));
    window.close();
  });

  it('has a viewer that defines what the page calls, compressed, and sent once to a client that keeps it', async () => {
    const first = await fetch(`${gateway.url}/docs/viewer.js`);
    expect([first.status, first.headers.get('content-type'), first.headers.get('content-encoding')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
      'gzip',
    ]);
    expect(Number(first.headers.get('content-length'))).toBeLessThan(1_500_000);
    const viewer = await first.text();
    expect(viewer).toContain('createApiReference');
    // Otherwise the page need not replace it any more.
    expect(viewer).toContain(placeholderLikeKey);
    const again = await fetch(`${gateway.url}/docs/viewer.js`, {
      headers: { 'if-none-match': first.headers.get('etag')! },
    });
    expect(again.status).toBe(304);
  });

  it.each([
    { accepted: undefined, encoding: undefined },
    { accepted: 'br, gzip', encoding: 'gzip' },
    { accepted: 'gzip;q=0', encoding: undefined },
  ])('has a document that is compressed for clients that accept $accepted', async ({ accepted, encoding }) => {
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
    const [response] = (await once(get(`${gateway.url}/openapi.json`, { headers }), 'response')) as [IncomingMessage];
    const bytes = await buffer(response);
    expect([response.headers['content-encoding'], response.headers.vary]).toEqual([encoding, 'accept-encoding']);
    const document = JSON.parse((encoding === undefined ? bytes : gunzipSync(bytes)).toString()) as unknown;
    expect(document).toMatchObject({
      info: { contact: { url: 'https://scheduling.test/booking' } },
      externalDocs: { url: 'https://scheduling.test/booking/guides' },
    });
  });

  it('names the address that the operator has given for integrators', async () => {
    await using other = await startGateway({ CONTACT_EMAIL: 'api@operator.example' });
    expect(await (await fetch(`${other.url}/openapi.json`)).json()).toMatchObject({
      info: { contact: { email: 'api@operator.example' } },
    });
  });
});
