import axe from 'axe-core';
import { JSDOM } from 'jsdom';

/** What axe finds in a page, except for what depends on its layout: jsdom has none. */
export async function accessibilityFindings(html: string): Promise<string[]> {
  const { window } = new JSDOM(html, { runScripts: 'outside-only' });
  window.eval(axe.source);
  const { violations } = (await window.eval(
    `axe.run({ rules: { 'color-contrast': { enabled: false } } })`,
  )) as axe.AxeResults;
  window.close();
  return violations.map(({ id }) => id);
}
