import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayUnderTest, startGateway } from './gateway-under-test.ts';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway({ PUBLIC_URL: 'https://scheduling.test/booking' });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function read(path: string): Promise<{ status: number; body: string }> {
  const response = await fetch(gateway.url + path);
  return { status: response.status, body: await response.text() };
}

/** The pages that a page leads to, each without its fragment. */
function linksOf(body: string): string[] {
  return [...body.matchAll(/href="\/booking(\/guides[^"#]*)/g)].map(([, link]) => link!);
}

describe('the guides', () => {
  it('can all be reached from their index, and lead only to pages and headings that exist', async () => {
    const pages = new Map<string, string>();
    for (const waiting = ['/guides']; waiting.length > 0;) {
      const path = waiting.pop()!;
      if (pages.has(path)) continue;
      const { status, body } = await read(path);
      expect(status, path).toBe(200);
      pages.set(path, body);
      waiting.push(...linksOf(body));
    }
    expect([...pages.keys()]).toEqual(
      expect.arrayContaining(['/guides/booking', '/guides/webhooks', '/guides/interface', '/guides/client']),
    );
    for (const [path, body] of pages) {
      for (const [, page, anchor] of body.matchAll(/href="(?:\/booking(\/guides[^"#]*))?#([^"]+)"/g)) {
        expect(pages.get(page ?? path), `${path} ${anchor}`).toContain(`id="${anchor}"`);
      }
      expect(body, path).not.toMatch(/href="[^"]*\.md/);
    }
  });

  it('have a heading once, and show code as it is', async () => {
    const { body } = await read('/guides/booking');
    expect([...body.matchAll(/<h1/g)]).toHaveLength(1);
    expect(body).toContain('&quot;state&quot;:&quot;BOOKED&quot;');
  });

  it('that do not exist are not found', async () => {
    expect(await read('/guides/none')).toMatchObject({
      status: 404,
      body: expect.stringContaining('route.not_found') as string,
    });
    expect(await read('/guides/..%2f..%2finterface')).toMatchObject({ status: 404 });
  });
});
