/** What axe and measurements find on a page. PAGES_SCREENSHOTS names a folder for pictures of all of them. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core';

const screenshots = process.env['PAGES_SCREENSHOTS'];
const axe = await readFile(join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'), 'utf8');

const widths = [320, 390, 1280];
const schemes = ['light', 'dark'] as const;

/** What is wrong with a page at three widths, in light and dark. */
export async function inspectPage(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  for (const width of widths)
    for (const scheme of schemes) {
      await page.setViewport({ width, height: 800, deviceScaleFactor: 1 });
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      const at = `${name}-${width}-${scheme}`;
      await takePicture(page, at);
      // The content is the same at all widths, and axe takes half a second.
      const violations = width === widths[0] ? await findViolations(page) : [];
      found.push(...[...(await measure(page)), ...violations].map((each) => `${at}: ${each}`));
    }
  return found;
}

/** As it is printed. */
export async function takePrint(page: Page, name: string): Promise<void> {
  await page.emulateMediaType('print');
  await takePicture(page, `${name}-print`);
  await page.emulateMediaType();
}

async function takePicture(page: Page, name: string): Promise<void> {
  if (screenshots === undefined) return;
  await mkdir(screenshots, { recursive: true });
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

/** What axe reports. */
async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(`if (!globalThis.axe) {${axe}}`);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  });
}

interface AxeResults {
  violations: { id: string; nodes: { html: string }[] }[];
}

/** Targets that are too small (WCAG 2.5.8), except for those within a sentence, and a width that needs scrolling (1.4.10). */
function measure(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`${scrollWidth} px wide on a screen of ${clientWidth}`);
    for (const target of document.querySelectorAll('a, button, input, textarea')) {
      if (!target.checkVisibility()) continue;
      const sentence = target.matches('a') ? target.parentElement!.textContent : target.textContent;
      if (sentence.trim() !== target.textContent.trim()) continue;
      const { width, height } = target.getBoundingClientRect();
      if (width < 24 || height < 24) found.push(`a target of ${width} x ${height} px: ${target.outerHTML}`);
    }
    return found;
  });
}
