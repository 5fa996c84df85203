import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
  request(gateway.url + path, { method, headers: { 'x-request-id': 'r', ...(accept !== undefined && { accept }) } }, (response) => {
    const { statusCode = 0, headers } = response;
    const { 'content-type': type, 'content-security-policy': policy } = headers;
    text(response).then((body) => resolve({ status: statusCode, type, policy: policy as string | undefined, body }), reject);
  })
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
    expect(linksOf(body)).toEqual(['/booking/guides', '/booking/docs', '/booking/openapi.json']);
    for (const link of linksOf(body)) expect((await ask(link.replace('/booking', ''))).status).toBe(200);
  });

  it('sees a page at an unknown address', async () => {
    const { status, type, policy, body } = await ask('/no/where', browser);
    expect([status, type]).toEqual([404, 'text/html; charset=utf-8']);
    expect(policy).toContain("default-src 'none'");
    expect(linksOf(body)).toEqual(['/booking/']);
  });

  it('gets every page with the same head except for the title, and with the same policy', async () => {
    const pages = [await ask('/', browser), await ask('/no/where', browser), await ask('/verify-email?token=unknown', browser)];
    const heads = pages.map(({ body }) => /<head>.*<\/head>/s.exec(body)![0].replace(/<title>.+<\/title>/, ''));
    expect(new Set(heads).size).toBe(1);
    expect(new Set(pages.map(({ policy }) => policy)).size).toBe(1);
  });
});

describe('an API client', () => {
  const problem = '{"type":"about:blank","title":"Not Found","status":404,"detail":"There is nothing at this address.","instance":"r","code":"route.not_found"}';

  it.each([undefined, '*/*', 'application/json', 'application/json, text/plain, */*', 'application/problem+json, text/html'])(
    'that accepts %s gets a problem at an unknown address, even at the root',
    async (accept) => {
      for (const path of ['/', '/no/where']) {
        expect(await ask(path, accept)).toEqual({ status: 404, type: 'application/problem+json; charset=utf-8', policy: undefined, body: problem });
      }
    },
  );

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
    const script = linksOf(body).find((link) => link.endsWith('/color-scheme.js'));
    expect((await ask(script!)).body).toContain('(prefers-color-scheme: dark)');
  });

  it('is found with a slash at the end, too', async () => {
    const { status, url } = await fetch(`${gateway.url}/docs/`);
    expect([status, url]).toEqual([200, `${gateway.url}/docs`]);
  });

  it('leaves the files of the page unchanged', async () => {
    expect((await ask('/docs/static/oauth2-redirect.html', browser)).body).toContain('oauth2-redirect.js');
  });

  it('does not keep the API key in the browser', async () => {
    expect((await ask('/docs/static/swagger-initializer.js')).body).not.toMatch(/"?persistAuthorization"?:\s*true/);
  });

  it('links to the document, which does not contain such a link itself', async () => {
    expect(JSON.parse((await ask('/docs/json')).body)).toMatchObject({ externalDocs: { url: '../openapi.json' } });
    expect(JSON.parse((await ask('/openapi.json')).body)).not.toHaveProperty('externalDocs');
  });

  it('loads everything from the gateway', async () => {
    const { body, policy } = await ask('/docs', browser);
    expect(policy).toContain("default-src 'self'");
    for (const link of linksOf(body)) expect(link).toMatch(/^\/docs\/static\//);
  });
});
