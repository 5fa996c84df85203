import { baseStyle, createRenderer, pagePolicy } from '@scheduling/http';
import type { FastifyReply } from 'fastify';

export interface PageValues {
  /** A language tag. */
  language: string;
  title: string;
  /** The other values that the template shows. */
  [name: string]: unknown;
}

export const renderTemplate = createRenderer(new URL('templates/', import.meta.url));

/** Renders a template in the layout that all pages share. Escapes every value. */
export function renderPage(
  template: 'start' | 'not-found' | 'email-verification' | 'guide',
  values: PageValues,
): string {
  return renderTemplate(template, { ...values, style });
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

/** What only the start page and the guides need is added. */
const style = `${baseStyle}
main.wide { max-width: 44rem; }
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
`;

export const contentSecurityPolicy = pagePolicy(style);
