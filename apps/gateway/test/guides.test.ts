import { readdirSync } from 'node:fs';
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
      waiting.push(...linksOf(body).filter((link) => !link.endsWith('.md')));
    }
    expect([...pages.keys()]).toEqual(
      expect.arrayContaining(['/guides/booking', '/guides/webhooks', '/guides/interface', '/guides/client']),
    );
    for (const [path, body] of pages) {
      for (const [, page, anchor] of body.matchAll(/href="(?:\/booking(\/guides[^"#]*))?#([^"]+)"/g)) {
        expect(pages.get(page ?? path), `${path} ${anchor}`).toContain(`id="${anchor}"`);
      }
      expect(body.match(/href="[^"]*\.md/g), path).toEqual([
        `href="/booking${path === '/guides' ? '/guides/README' : path}.md`,
      ]);
    }
  });

  it('have their index with a slash at the end, too', async () => {
    expect(await read('/guides/')).toEqual(await read('/guides'));
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

  it('are pages in an order, which is that of their index', async () => {
    const titles: string[] = [];
    for (let path: string | undefined = '/guides'; path !== undefined;) {
      const { body }: { body: string } = await read(path);
      titles.push(/<h1>(.+)<\/h1>/.exec(body)![1]!);
      path = /href="\/booking([^"]+)" rel="next"/.exec(body)?.[1];
    }
    expect(titles.slice(0, 3)).toEqual(['Guides', 'Quick start', 'Order of set-up']);
    const files = readdirSync(new URL('../../../docs/guides', import.meta.url));
    expect(titles, 'the table of docs/guides/README.md has every guide').toHaveLength(files.length + 1);
  });

  it('are Markdown, too, which leads to Markdown and has the address of the gateway in its requests', async () => {
    const { body: index } = await read('/guides/README.md');
    expect(index).toMatch(/^# Guides\n/);
    expect(index).toContain('[Booking](booking.md)');
    const { body: quickStart } = await read('/guides/quick-start.md');
    expect(quickStart).toContain('\nGATEWAY=https://scheduling.test/booking\nCRM=acme\nKEY=sk_…\n');
    for (const name of ['README', 'quick-start', 'client', 'python-client', 'java-client', 'go-client']) {
      const { body } = await read(`/guides/${name}.md`);
      expect(body, name).toContain('https://scheduling.test/booking');
      expect(body, name).not.toMatch(
        /demo-key|CRM=demo|<!-- |those of `npm start`,|in the\s+folder\s+of\s+`npm start`|while `npm start`/i,
      );
    }
    for (const [, target] of (index + quickStart).matchAll(/\]\(([^)#]+\.md)/g))
      expect(await read(`/guides/${target}`), target).toMatchObject({ status: 200 });
  });

  it('are listed for programs, with what else there is to read', async () => {
    const response = await fetch(`${gateway.url}/llms.txt`);
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const text = await response.text();
    expect(text).toContain(
      '- [Booking](https://scheduling.test/booking/guides/booking.md): How are slots, bookings, holds and requests used?',
    );
    const links = [...text.matchAll(/\]\(https:\/\/scheduling\.test\/booking([^)]+)\)/g)].map(([, path]) => path!);
    expect(links.length).toBeGreaterThan(20);
    for (const path of links) expect(await read(path), path).toMatchObject({ status: 200 });
  });
});
