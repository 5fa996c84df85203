import swagger, { type StaticDocumentSpec } from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { fastify, type FastifyInstance } from 'fastify';
import { readdir } from 'node:fs/promises';
import { completeDocument, showAlternatives } from './api-document.ts';
import { RequestError } from './problem.ts';
import { type RenderedFile, renderFiles, sendFile } from './rendered-files.ts';
import { collectRoutes } from './route-table.ts';

/**
 * Serves the API document at `/openapi.json`, generated from the same schemas that validate, and a page to read and try it at `/docs`. Neither
 * needs a key, so everything is rendered once, when the gateway starts.
 */
export async function serveDocumentation(app: FastifyInstance, publicUrl: string): Promise<void> {
  await app.register(swagger, {
    openapi: describeApi(publicUrl),
    transform: ({ schema, url }) => ({ schema: showAlternatives(schema), url }),
    transformObject: (document) => {
      if ('swaggerObject' in document) return document.swaggerObject;
      return completeDocument(document.openapiObject);
    },
  });
  let files = new Map<string, RenderedFile>();
  app.addHook('onReady', async () => {
    files = await renderDocumentation(app.swagger() as Document);
  });
  const schema = { hide: true };
  for (const url of ['/openapi.json', '/docs', '/docs/*']) {
    app.get(url, { schema }, async (request, reply) => {
      const path = request.url.split('?', 1)[0]!;
      // The addresses in the page are relative to /docs.
      if (path === '/docs/') return reply.redirect('../docs', 301);
      const file = files.get(path);
      if (file === undefined) throw new RequestError('route.not_found');
      return sendFile(request, reply, file);
    });
  }
}

type Document = StaticDocumentSpec['document'];

async function renderDocumentation(document: Document): Promise<Map<string, RenderedFile>> {
  const renderer = fastify();
  const routes = collectRoutes(renderer);
  await renderer.register(swagger, { mode: 'static', specification: { document } });
  await renderer.register(documentationPage);
  renderer.get('/openapi.json', () => document);
  await renderer.ready();
  // The document is served as JSON. To write it as YAML, too, would take a quarter of the time of a start.
  const pages = routes.map(({ url }) => url).filter((url) => !url.endsWith('*') && url !== '/docs/yaml');
  const assets = await readdir(new URL('static/', import.meta.resolve('@fastify/swagger-ui')));
  const files = await renderFiles(renderer, new Set([...pages, ...assets.map((name) => `/docs/static/${name}`)]));
  await renderer.close();
  return files;
}

/** Swagger UI, restricted to resources from this gateway. */
async function documentationPage(scope: FastifyInstance): Promise<void> {
  // Swagger UI sets no viewport in its page, so a phone would use the desktop layout. Its files are streams.
  scope.addHook('onSend', async (_request, reply, payload) =>
    typeof payload === 'string' && reply.getHeader('content-type') === 'text/html; charset=utf-8' ? payload.replace('<head>', `<head>\n${viewport}`) : payload,
  );
  await scope.register(swaggerUi, {
    routePrefix: '/docs',
    // The whole page comes from this origin, and its requests stay here.
    staticCSP: "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; base-uri 'self'",
    uiConfig: { layout: 'BaseLayout', tryItOutEnabled: true },
    // The page works under whatever name the gateway was reached by, and sends its requests there.
    transformSpecification: (document) => ({
      ...document,
      // Swagger UI would turn it into a link to a foreign site.
      info: { ...document['info'], license: undefined },
      servers: [{ url: '..', description: 'this gateway' }],
      externalDocs: { url: '../openapi.json', description: 'OpenAPI document' },
    }),
    theme: {
      title: 'Scheduling API',
      css: [{ filename: 'page.css', content: pageStyle }],
      js: [{ filename: 'color-scheme.js', content: followColorScheme }],
    },
  });
}

const viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">';

/** Swagger UI has a dark theme, but nothing enables it in this layout. */
const followColorScheme = `
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
`;

/** Sets the background before the page is drawn, shows one link to the document instead of two, and stacks parameters vertically on a phone. */
const pageStyle = `
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) { body { background: #1c2022; } }
.swagger-ui .info hgroup .link { display: none; }
@media (max-width: 40rem) {
  .swagger-ui table.parameters thead { display: none; }
  .swagger-ui table.parameters, .swagger-ui table.parameters :is(tbody, tr, td) { display: block; }
}
`;

function describeApi(publicUrl: string) {
  return {
    openapi: '3.1.0',
    info: { title: 'Scheduling API', version: '1', description: introduction, license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' } },
    servers: [{ url: publicUrl }],
    security: [{ clientId: [] }],
    components: {
      securitySchemes: {
        clientId: { type: 'apiKey' as const, in: 'header', name: 'X-SERVICE-CLIENT-ID', description: 'API key of the CRM.' },
      },
    },
    tags: [
      { name: 'Users', description: 'People with login and contact data.' },
      { name: 'Accounts', description: 'Booked service plans with their invoice data, each owned by a user.' },
      { name: 'Providers', description: 'Calendar profiles, each owned by a user.' },
      { name: 'Staff', description: 'The users who have access to a provider.' },
      { name: 'Timeslots', description: 'Time windows in which a resource can be booked.' },
      { name: 'Appointments', description: 'Booked slots with their participants, single or in a series.' },
      { name: 'Participations', description: 'The bookings of customers.' },
      { name: 'Slots and bookings', description: 'What can be booked, and bookings in one request.' },
      { name: 'Customers', description: 'The contact data of the people who book.' },
      { name: 'Events', description: 'What has happened in the CRM, in order.' },
      { name: 'Webhooks', description: 'Endpoints of the CRM to which events are sent.' },
      { name: 'Erasures', description: 'The deletion of everybody of whom the CRM knows an e-mail address.' },
    ],
  };
}

const introduction = `Appointment booking for CRMs. Set up users, accounts and providers once, and create timeslots. Then list what can be booked, and book it in one request.

- Every request carries an API key in the \`X-SERVICE-CLIENT-ID\` header, and the ID of that key’s CRM in its path.
- References are chosen by the client, by convention \`uniqueId@platformName\`. In a URL they are percent-encoded, once; generated clients do this for you.
- Date-times in requests, \`YYYY-MM-DDThh:mm\`, are local to the provider’s time zone; those in responses are in UTC. In a raw query string, write \`+\` as \`%2B\`.
- Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`; \`instance\` is the request ID, which is also in the \`X-Request-Id\` header.
- Unknown fields and parameters are ignored. With the header \`Prefer: handling=strict\` they are rejected, which finds typos while you develop.
- Retrying a creation with the same reference is safe.`;
