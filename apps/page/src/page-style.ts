import { baseStyle, pagePolicy } from '@scheduling/http';
import { LRUCache } from 'lru-cache';

export interface PageStyle {
  css: string;
  /** The Content-Security-Policy of a page with it. */
  policy: string;
}

const styles = new LRUCache<string, PageStyle>({ max: 100, memoMethod: (colour) => createStyle(colour) });

/** The style of the pages, with the colour of a CRM if it has one: `#rrggbb`, which carries white text. */
export function pageStyle(colour: string | undefined): PageStyle {
  return styles.memo(colour !== undefined && /^#[0-9a-f]{6}$/i.test(colour) ? colour : defaultColour);
}

/** The blue of the mails. */
const defaultColour = '#2450c8';

function createStyle(colour: string): PageStyle {
  const css = `:root { --brand: ${colour}; }${baseStyle}${ownStyle}`;
  return { css, policy: pagePolicy(css) };
}

/** Links and buttons are at least 24 CSS px high (WCAG 2.5.8). */
const ownStyle = `
header { padding: .875rem 1.25rem; background: var(--brand); color: #fff; font-weight: 600; text-align: center; }
header p { margin: 0; }
.sandbox { display: inline-block; margin-top: .375rem; padding: 0 .75rem; border-radius: .625rem; background: #fff; color: #000; font-size: .9375rem; }
main { padding-bottom: 1.5rem; }
dd p { margin: 0; }
dd .soft { font-weight: 400; }
a { display: inline-block; min-height: 1.5rem; }
button, .button { background: var(--brand); color: #fff; font-weight: 600; }
.button { box-sizing: border-box; width: 100%; min-height: 3rem; margin-bottom: .5rem; padding: .6875rem 1rem; border: 1px solid var(--brand); border-radius: .625rem; text-align: center; text-decoration: none; }
.quiet { border-color: color-mix(in srgb, CanvasText 50%, Canvas); background: none; color: CanvasText; }
:focus-visible { outline: 3px solid CanvasText; outline-offset: 3px; }
.note { padding: .75rem 1rem; border-inline-start: .375rem solid #1b7a3d; background: color-mix(in srgb, CanvasText 7%, Canvas); }
.error { border-color: #c62828; }
.error h2 { margin: 0; font-size: 1.0625rem; }
.error ul, .error p { margin: .25rem 0 0; }
label { display: block; font-weight: 600; }
textarea { box-sizing: border-box; width: 100%; padding: .625rem; border: 1px solid color-mix(in srgb, CanvasText 60%, Canvas); border-radius: .625rem; font: inherit; }
.hint { margin: 0 0 1rem; }
.times { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); gap: .5rem; padding: 0; list-style: none; }
.times li { margin: 0; }
.times .button { height: 100%; margin: 0; padding-inline: .25rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.contact { padding: 0; list-style: none; }
.contact li { margin: .25rem 0; }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin: 1.5rem 0; }
footer { max-width: 32rem; margin: 0 auto; padding: 0 1.25rem 2rem; white-space: normal; }
footer h2 { font-size: 1rem; }
.imprint { margin: 0 0 .75rem; white-space: pre-line; }
@media print {
header { background: none; color: #000; }
form, nav, .actions, footer a { display: none; }
}
`;
