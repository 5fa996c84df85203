import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';

/** Answers people who open an address without a route in a browser. Returns undefined for API clients, which see a problem instead. */
export type SendBrowserPage = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/** The start page at `/`, and a page that says that there is nothing. Links begin with the path under which clients reach the gateway. */
export function createBrowserPages(publicUrl: string): SendBrowserPage {
  const basePath = new URL(publicUrl).pathname.replace(/\/$/, '');
  return (request, reply) => {
    if (!isBrowser(request)) return undefined;
    const [status, html] = request.url.split('?', 1)[0] === '/' ? [200, startPage(basePath)] : [404, notFoundPage(basePath)];
    return reply
      .code(status)
      .type('text/html; charset=utf-8')
      .headers({ 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
      .send(html);
  };
}

/** Browsers name HTML and no kind of JSON. Below `/crms` is the API, whatever is accepted. */
function isBrowser({ method, url, headers }: FastifyRequest): boolean {
  if (!['GET', 'HEAD'].includes(method) || url.startsWith('/crms/')) return false;
  const accepted = (headers.accept ?? '').split(',').map((range) => range.split(';', 1)[0]!.trim().toLowerCase());
  return accepted.includes('text/html') && !accepted.some((range) => range.endsWith('json'));
}

function startPage(basePath: string): string {
  return page(
    'Scheduling API',
    `<p>This is the HTTP API of an appointment service. CRM systems use it to manage calendars, appointments and customers.</p>
<ul>
<li><a href="${basePath}/docs">API documentation</a>: read about every operation and try it with your API key</li>
<li><a href="${basePath}/openapi.json">OpenAPI document</a>: generate a client from it</li>
</ul>`,
  );
}

function notFoundPage(basePath: string): string {
  return page('Page not found', `<p>There is nothing at this address.</p>\n<p><a href="${basePath}/">Go to the start page</a></p>`);
}

function page(title: string, content: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`;
}

const style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1.125rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; }
main { max-width: 36rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
ul { padding-left: 1.25rem; }
li { margin: .75rem 0; }
a { color: LinkText; }
`;

/** Nothing is loaded or run but this style. */
const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');
