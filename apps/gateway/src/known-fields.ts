import type { FastifyInstance } from 'fastify';
import { type BodySchema, fieldsOf, schemasFor } from './body-schema.ts';
import { normalize } from './fields.ts';

/**
 * A handler sees only the parameters and fields that the schemas of its route name; the others are removed when the
 * request has been validated. So they have no meaning, whatever a handler does with a body or a query. Without a
 * schema, nothing is left of it. Values are normalized.
 */
export function removeUnknownFields(scope: FastifyInstance): void {
  scope.addHook('preHandler', (request, _reply, done) => {
    const { query, body } = schemasFor(request);
    request.query = knownFields(request.query, query);
    request.body = knownFields(request.body, body);
    done();
  });
}

/**
 * A copy with only the fields that the schema names, at every depth, and normalized. Of an object or list whose schema
 * does not say what is in it, nothing is left.
 */
export function knownFields(value: unknown, schema: BodySchema): unknown {
  if (typeof value === 'string') return normalize(value, schema.format);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.map((each) => knownFields(each, items));
  }
  const values = value as Record<string, unknown>;
  const known = Object.entries(fieldsOf(value, schema) ?? {}).filter(([name]) => Object.hasOwn(values, name));
  return Object.fromEntries(known.map(([name, field]) => [name, knownFields(values[name], field)]));
}
