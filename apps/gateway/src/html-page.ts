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
  return renderTemplate(template, { ...values, style, script: copyScript });
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
.code { position: relative; }
pre { padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: normal; overflow-x: auto; }
.program pre { white-space: pre; }
pre code { padding: 0; background: none; font-size: 1em; }
.scroll { overflow-x: auto; overflow-wrap: break-word; }
table { border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .375rem .75rem .375rem 0; border-bottom: 1px solid color-mix(in srgb, CanvasText 20%, Canvas); text-align: left; vertical-align: top; }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin-top: 1.5rem; }
td > a:only-child, nav a { display: inline-block; min-height: 1.5rem; }
.contents { font-size: 1rem; margin-top: 0; }
.contents ul { margin: 0; columns: 16rem; }
.contents li { margin: .25rem 0; }
.word { white-space: nowrap; }
.code:has(button) pre { padding-right: 5rem; }
.program:has(button) pre { padding: 2.75rem 1rem .75rem; }
@media (max-width: 40rem) { .code:has(button) pre { padding: 2.75rem 1rem .75rem; } }
.code button { position: absolute; top: .375rem; right: .375rem; width: auto; min-height: 2rem; margin: 0; padding: 0 .625rem; font-size: .8125rem; }
`;

/** Only adds to pages that are complete without it. Browsers have a clipboard at https and on the own machine. */
const copyScript = `
if (navigator.clipboard) {
  for (const block of document.querySelectorAll('.code:not(.output)')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.setAttribute('aria-live', 'polite');
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.querySelector('code').textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    block.append(button);
  }
}
`;

export const contentSecurityPolicy = pagePolicy(style, { script: copyScript });
