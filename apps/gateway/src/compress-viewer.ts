/** Writes the script of Scalar, which its Fastify plugin contains as a text, compressed to the standard output. */
import scalar from '@scalar/fastify-api-reference';
import { fastify } from 'fastify';
import { gzipSync } from 'node:zlib';

const app = fastify();
await app.register(scalar, { routePrefix: '/docs', configuration: { content: {} } });
const { rawPayload } = await app.inject('/docs/js/scalar.js');
await app.close();
process.stdout.write(gzipSync(rawPayload, { level: 9 }));
