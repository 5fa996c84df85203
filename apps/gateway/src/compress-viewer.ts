/** The script of Scalar, which its Fastify plugin contains as a text, compressed: a message to the thread that has started this one. */
import scalar from '@scalar/fastify-api-reference';
import { fastify } from 'fastify';
import { parentPort } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';

const app = fastify();
await app.register(scalar, { routePrefix: '/docs', configuration: { content: {} } });
const { rawPayload } = await app.inject('/docs/js/scalar.js');
await app.close();
const bytes = new Uint8Array(gzipSync(rawPayload, { level: 9 }));
parentPort!.postMessage(bytes, [bytes.buffer]);
