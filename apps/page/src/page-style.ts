import { baseStyle, pagePolicy } from '@scheduling/http';
import { LRUCache } from 'lru-cache';

export interface PageStyle {
  css: string;
  /** The Content-Security-Policy of a page with it. */
  policy: string;
}

interface Look {
  colour: string;
  embedOn: readonly string[];
}

const styles = new LRUCache<string, PageStyle, Look>({
  max: 200,
  memoMethod: (_key, _stale, { context }) => createStyle(context),
});

/**
 * The style of the pages, with the colour of a CRM if it has one: `#rrggbb`, which carries white text.
 *
 * @param embedOn origins whose pages may show it in a frame
 */
export function pageStyle(given: string | undefined, embedOn: readonly string[] = []): PageStyle {
  const colour = given !== undefined && /^#[0-9a-f]{6}$/i.test(given) ? given : defaultColour;
  return styles.memo([colour, ...embedOn].join(' '), { context: { colour, embedOn } });
}

/** The blue of the mails. */
const defaultColour = '#2450c8';

function createStyle({ colour, embedOn }: Look): PageStyle {
  const css = `:root { --brand: ${colour}; }${baseStyle}${ownStyle}`;
  return { css, policy: pagePolicy(css, { embedOn }) };
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
.warning { border-color: #b26a00; }
.note p { margin: .25rem 0 0; }
.error h2 { margin: 0; font-size: 1.0625rem; }
.error ul { margin: .25rem 0 0; padding: 0; list-style: none; }
label { display: block; margin-bottom: .25rem; font-weight: 600; }
input, textarea { box-sizing: border-box; width: 100%; padding: .625rem; border: 1px solid color-mix(in srgb, CanvasText 60%, Canvas); border-radius: .625rem; background: Field; color: FieldText; font: inherit; }
input { min-height: 3rem; margin-bottom: 1.25rem; }
.problem + * { border: 2px solid #c62828; }
.problem { margin: .25rem 0; color: light-dark(#b71c1c, #ff8a80); font-weight: 600; }
.hint { margin: 0 0 1rem; }
.times { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.25rem, 1fr)); gap: .5rem; padding: 0; list-style: none; }
.times li { margin: 0; }
.times .button { height: 100%; margin: 0; padding-inline: .25rem; font-size: 1rem; text-wrap: balance; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.times button { width: 100%; cursor: pointer; }
small { display: block; font-size: .8125rem; font-weight: 400; }
h1 + .terms { margin-top: -.75rem; }
.offers, .nearest { padding: 0; list-style: none; }
.nearest li { margin: .5rem 0; }
.nearest button { margin: 0; text-wrap: balance; }
.offers .button { padding: 1rem 1.25rem; text-align: start; }
.offers .soft { display: block; font-weight: 400; }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin: 1.5rem 0; }
.people { gap: .5rem; margin-top: 0; }
.people .button { width: auto; margin: 0; }
.people [aria-current] { border-color: var(--brand); background: var(--brand); color: #fff; }
.contact { padding: 0; list-style: none; }
.contact li { margin: .25rem 0; }
footer { max-width: 32rem; margin: 0 auto; padding: 0 1.25rem 2rem; white-space: normal; }
footer h2 { font-size: 1rem; }
.imprint { margin: 0 0 .75rem; white-space: pre-line; }
@media print {
header { background: none; color: #000; }
form:not(:has(.times)), nav, #people, .actions, footer a { display: none; }
}
`;
