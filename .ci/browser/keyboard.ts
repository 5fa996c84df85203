/** A person who has nothing but a keyboard. */
import assert from 'node:assert/strict';
import type { Page } from 'puppeteer-core';

export interface Focused {
  tag: string;
  id: string;
  name: string;
}

/** Presses Tab until the link or button with this name has the focus, then Enter, and waits for the next page. */
export async function follow(page: Page, name: string | RegExp): Promise<void> {
  await tabTo(page, (element) => (typeof name === 'string' ? element.name === name : name.test(element.name)));
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
}

/** Tabs to a field and types, behind what it has already. */
export async function typeInto(page: Page, id: string, text: string): Promise<void> {
  await tabTo(page, (element) => element.id === id);
  await page.keyboard.press('End');
  await page.keyboard.type(text);
}

export async function tabTo(page: Page, isWanted: (element: Focused) => boolean): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < 100; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = await focusedOf(page);
    if (isWanted(focused)) return;
    seen.push(focused.name || focused.id);
  }
  assert.fail(`not reached by Tab; reached ${seen.slice(0, 10).join(', ')}`);
}

export function focusedOf(page: Page): Promise<Focused> {
  return page.evaluate(() => {
    const element = document.activeElement!;
    return {
      tag: element.tagName,
      id: element.id,
      name: element.textContent.trim().replaceAll(/\s+/g, ' '),
    };
  });
}

/** What the page itself gives the focus to, which it does only when it is drawn. */
export async function autofocusedOf(page: Page): Promise<Focused> {
  const until = performance.now() + 10_000;
  // Without script, the page has no timers with which puppeteer could wait in it.
  while (performance.now() < until) {
    const focused = await focusedOf(page);
    if (focused.tag !== 'BODY') return focused;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('nothing has the focus');
}

export function headingOf(page: Page): Promise<string> {
  return page.evaluate(() => document.querySelector('h1')!.textContent.trim());
}
