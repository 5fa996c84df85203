/**
 * The guides of the gateway in Chromium: what axe and measurements find on them, at three widths, in light and dark; that no word of the code is broken on a
 * phone; that one leads to the next; and that commands can be copied.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'puppeteer-core';
import { inspectPage } from './inspect-page.ts';
import { type PagesUnderTest, startPages, withPage } from './start-pages.ts';

let pages: PagesUnderTest;
before(async () => {
  pages = await startPages();
});
after(() => pages?.[Symbol.asyncDispose]());

function onGuide(name: string, work: (page: Page) => Promise<void>): Promise<void> {
  const { gateway } = pages.stack.info;
  return withPage(
    pages,
    async (page) => {
      await page.goto(`${gateway}/guides/${name}`);
      await work(page);
    },
    [gateway],
  );
}

/** The words of the code that go on in another line. */
function brokenWords(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const broken: string[] = [];
    for (const code of document.querySelectorAll('pre code')) {
      const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const node = texts.currentNode as Text;
        for (const { 0: word, index } of node.data.matchAll(/[\p{L}\d_.:@%-]+/gu)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) broken.push(word);
        }
      }
    }
    return broken;
  });
}

describe('the guides', () => {
  for (const name of ['README', 'quick-start', 'booking', 'errors'])
    it(`${name} can be read by everybody, at every width`, () =>
      onGuide(name, async (page) => assert.deepEqual(await inspectPage(page, `guide-${name}`), [])));

  it('follow each other, and break no word of their code on a phone', async () => {
    const visited: string[] = [];
    await onGuide('README', async (page) => {
      await page.setViewport({ width: 390, height: 800 });
      for (let next = true; next; next = (await page.$('a[rel=next]')) !== null) {
        if (visited.length > 0) await Promise.all([page.waitForNavigation(), page.click('a[rel=next]')]);
        visited.push(new URL(page.url()).pathname);
        assert.deepEqual(await brokenWords(page), [], page.url());
      }
    });
    assert.deepEqual(visited.slice(0, 3), ['/guides/README', '/guides/quick-start', '/guides/set-up']);
    assert.equal(visited.at(-1), '/guides/migration');
  });

  it('copy a command as it is', () =>
    onGuide('quick-start', async (page) => {
      await page
        .browserContext()
        .overridePermissions(pages.stack.info.gateway, ['clipboard-read', 'clipboard-sanitized-write']);
      await page.click('.code button');
      await page.waitForFunction(() => document.querySelector('.code button')?.textContent === 'Copied');
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(copied, /^GATEWAY=http:\/\/127\.0\.0\.1:\d+\nCRM=demo\nKEY=.+\ncall\(\) \{ curl .+ \}\n$/);
    }));
});
