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
export function renderPage(template: 'start' | 'not-found' | 'email-verification', values: PageValues): string {
  return eta.render(`./${template}`, { ...values, style });
}

export function sendPage(reply: FastifyReply, status: number, html: string): FastifyReply {
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .headers({ 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
    .send(html);
}

const eta = new Eta({ views: fileURLToPath(new URL('templates', import.meta.url)), cache: true, autoEscape: true });

/** The same blue as in the mails. */
const style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1.125rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
main { max-width: 32rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
main.wide { max-width: 36rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
ul { padding-left: 1.25rem; }
li { margin: .75rem 0; }
a { color: LinkText; }
dl { margin: 1.5rem 0; padding: 1rem 1.25rem; border: 1px solid color-mix(in srgb, CanvasText 20%, Canvas); border-radius: .75rem; }
dt, .soft { font-size: .9375rem; color: color-mix(in srgb, CanvasText 70%, Canvas); }
dd { margin: 0 0 .75rem; font-weight: 600; }
dd:last-child { margin: 0; }
button { width: 100%; min-height: 3rem; margin-bottom: .5rem; border: 0; border-radius: .625rem; cursor: pointer; }
button { background: #2450c8; color: #fff; font: inherit; font-weight: 600; }
button:focus-visible { outline: 3px solid CanvasText; outline-offset: 3px; }
`;

/** Allows no resources and no scripts, only this style; a form posts back to its own origin. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');
