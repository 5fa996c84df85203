import { Eta } from 'eta';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Renders the templates of a folder, `<name>.eta`; a template may be laid out in `@layout`, which all pages share. Every
 * value is escaped.
 */
export type RenderTemplate = (name: string, values: Record<string, unknown>) => string;

export function createRenderer(folder: URL): RenderTemplate {
  const eta = new Eta({ views: fileURLToPath(folder), cache: true, autoEscape: true });
  eta.loadTemplate('@layout', layout);
  return (name, values) => eta.render(`./${name}`, values);
}

const layout = readFileSync(new URL('layout.eta', import.meta.url), 'utf8');

/** Permits an inline script or style in a Content-Security-Policy. */
export function contentHash(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}

/** The path under which clients reach a service: links in pages begin with it. */
export function basePathOf(publicUrl: string): string {
  return new URL(publicUrl).pathname.replace(/\/$/, '');
}

/**
 * Allows no resources, only this style and, if there is one, this inline script; a form posts back to its own origin.
 *
 * @param embedOn origins whose pages may show this one in a frame
 */
export function pagePolicy(
  style: string,
  { embedOn = [], script }: { embedOn?: readonly string[]; script?: string } = {},
): string {
  return [
    "default-src 'none'",
    `style-src ${contentHash(style)}`,
    ...(script === undefined ? [] : [`script-src ${contentHash(script)}`]),
    "form-action 'self'",
    `frame-ancestors ${embedOn.join(' ') || "'none'"}`,
    "base-uri 'none'",
  ].join('; ');
}

/** What all pages look like. The blue is that of the mails. */
export const baseStyle = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1.125rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
main { max-width: 32rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 2rem 0 .5rem; font-size: 1.25rem; line-height: 1.25; }
ul { padding-left: 1.25rem; }
li { margin: .75rem 0; }
a { color: LinkText; }
dl { margin: 1.5rem 0; padding: 1rem 1.25rem; border: 1px solid color-mix(in srgb, CanvasText 20%, Canvas); border-radius: .75rem; }
dt, .soft { font-size: .9375rem; color: color-mix(in srgb, CanvasText 70%, Canvas); }
dd { margin: 0 0 .75rem; font-weight: 600; }
dd:last-child { margin: 0; }
footer { margin-top: 2.5rem; white-space: pre-line; }
button { width: 100%; min-height: 3rem; margin-bottom: .5rem; border: 0; border-radius: .625rem; cursor: pointer; }
button { background: #2450c8; color: #fff; font: inherit; font-weight: 600; }
button:focus-visible { outline: 3px solid CanvasText; outline-offset: 3px; }
`;
