import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ApiOwner, describeApi } from './api-description.ts';
import { completeDocument, showAlternatives, showScope } from './api-document.ts';
import { type ApiDocument, writeCollection } from './collection/write-collection.ts';
import { documentationPage } from './documentation-page.ts';
import { makeOnce, type RenderedFile, renderedFile, sendFile } from './rendered-files.ts';
import { loadViewer } from './viewer.ts';

const json = 'application/json; charset=utf-8';

/**
 * Serves the API document at `/openapi.json`, generated from the same schemas that validate, the same as a collection at
 * `/collection.json`, and a page to read and try it at `/docs`. None needs a key, so each file is made once.
 */
export async function serveDocumentation(app: FastifyInstance, owner: ApiOwner): Promise<void> {
  await app.register(swagger, {
    openapi: describeApi(owner),
    transform: ({ schema, url, route }) => ({
      schema: showScope(showAlternatives(schema), route.config?.keyScope),
      url,
    }),
    transformObject: (document) => {
      if ('swaggerObject' in document) return document.swaggerObject;
      return completeDocument(document.openapiObject);
    },
  });
  let document: RenderedFile;
  app.addHook('onReady', async () => {
    document = renderedFile(json, JSON.stringify(app.swagger()));
  });
  const collection = makeOnce(async () => {
    const described = JSON.parse(document.bytes!.toString()) as ApiDocument;
    return renderedFile(json, JSON.stringify(writeCollection(described, owner.publicUrl), undefined, 2), {
      'content-disposition': 'attachment; filename="scheduling.postman_collection.json"',
    });
  });
  const viewer = loadViewer();
  const files: Record<string, () => RenderedFile | Promise<RenderedFile>> = {
    '/openapi.json': () => document,
    '/collection.json': collection,
    '/docs': () => documentationPage,
    '/docs/viewer.js': viewer,
  };
  const schema = { hide: true };
  for (const [url, file] of Object.entries(files)) {
    app.get(url, { schema }, async (request: FastifyRequest, reply: FastifyReply) =>
      sendFile(request, reply, await file()),
    );
  }
  // The addresses in the page are relative to /docs.
  app.get('/docs/', { schema }, async (_request, reply) => reply.redirect('../docs', 301));
}
