import { Eta } from 'eta';
import type { FastifyReply } from 'fastify';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';

export interface PageValues {
  /** A language tag. */
  language: string;
  title: string;
  /** The other values that the template shows. */
  [name: string]: unknown;
}

/** Renders a template in the layout that all pages share. Escapes every value. */
export function renderPage(
  template: 'start' | 'not-found' | 'email-verification' | 'guide',
  values: PageValues,
): string {
  return renderTemplate(template, { ...values, style });
}

export function renderTemplate(name: string, values: Record<string, unknown>): string {
  return eta.render(`./${name}`, values);
}

/** Permits an inline script or style in a Content-Security-Policy. */
export function contentHash(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}

/** The path under which clients reach the gateway: links in pages begin with it. */
export function basePathOf(publicUrl: string): string {
  return new URL(publicUrl).pathname.replace(/\/$/, '');
}

export function sendPage(reply: FastifyReply, status: number, html: string): FastifyReply {
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .headers({
      'content-security-policy': contentSecurityPolicy,
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    .send(html);
}

const eta = new Eta({ views: fileURLToPath(new URL('templates', import.meta.url)), cache: true, autoEscape: true });

/** The same blue as in the mails. */
const style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1.125rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
main { max-width: 32rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
main.wide { max-width: 44rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 2rem 0 .5rem; font-size: 1.25rem; line-height: 1.25; }
ul { padding-left: 1.25rem; }
li { margin: .75rem 0; }
a { color: LinkText; }
dl { margin: 1.5rem 0; padding: 1rem 1.25rem; border: 1px solid color-mix(in srgb, CanvasText 20%, Canvas); border-radius: .75rem; }
dt, .soft { font-size: .9375rem; color: color-mix(in srgb, CanvasText 70%, Canvas); }
dd { margin: 0 0 .75rem; font-weight: 600; }
dd:last-child { margin: 0; }
article { font-size: 1rem; }
article h3 { margin: 1.5rem 0 .5rem; font-size: 1.0625rem; }
article li { margin: .375rem 0; }
code, pre { font: .875em/1.5 ui-monospace, monospace; background: color-mix(in srgb, CanvasText 7%, Canvas); border-radius: .375rem; }
code { padding: .1em .3em; }
pre { padding: .75rem 1rem; white-space: pre-wrap; }
pre code { padding: 0; background: none; font-size: 1em; }
.scroll { overflow-x: auto; overflow-wrap: break-word; }
.scroll code { overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .375rem .75rem .375rem 0; border-bottom: 1px solid color-mix(in srgb, CanvasText 20%, Canvas); text-align: left; vertical-align: top; }
nav { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem; margin-top: 2.5rem; }
footer { margin-top: 2.5rem; white-space: pre-line; }
button { width: 100%; min-height: 3rem; margin-bottom: .5rem; border: 0; border-radius: .625rem; cursor: pointer; }
button { background: #2450c8; color: #fff; font: inherit; font-weight: 600; }
button:focus-visible { outline: 3px solid CanvasText; outline-offset: 3px; }
`;

/** Allows no resources and no scripts, only this style; a form posts back to its own origin. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src ${contentHash(style)}`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');
