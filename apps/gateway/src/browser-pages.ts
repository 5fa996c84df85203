import { basePathOf } from '@scheduling/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import manifest from '../package.json' with { type: 'json' };
import { renderPage, sendPage } from './html-page.ts';

const { version } = manifest;

/**
 * Shows a page to people who open an unknown address in a browser. Returns undefined for API clients, which get a
 * problem instead.
 */
export type SendBrowserPage = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/** The start page at `/`, and a "not found" page. */
export function createBrowserPages(publicUrl: string): SendBrowserPage {
  const basePath = basePathOf(publicUrl);
  return (request, reply) => {
    if (!isBrowser(request)) return undefined;
    return request.url.split('?', 1)[0] === '/'
      ? sendPage(
          reply,
          200,
          renderPage('start', { language: 'en', title: 'Scheduling API', basePath, publicUrl, version }),
        )
      : sendPage(reply, 404, renderPage('not-found', { language: 'en', title: 'Page not found', basePath }));
  };
}

/** Browsers accept HTML and no kind of JSON. Everything below `/crms` is the API, whatever the client accepts. */
function isBrowser({ method, url, headers }: FastifyRequest): boolean {
  if (!['GET', 'HEAD'].includes(method) || url.startsWith('/crms/')) return false;
  const accepted = (headers.accept ?? '').split(',').map((range) => range.split(';', 1)[0]!.trim().toLowerCase());
  return accepted.includes('text/html') && !accepted.some((range) => range.endsWith('json'));
}
