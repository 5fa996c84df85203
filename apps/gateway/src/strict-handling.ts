import type { FastifyInstance } from 'fastify';
import { type BodySchema, escapePointer, fieldsOf, schemasFor } from './body-schema.ts';
import { type Fault, RequestError } from './problem.ts';

/** A body of 1 MiB can hold a hundred thousand unknown fields. */
const maxFaults = 1_000;

/**
 * Rejects unknown parameters and fields, which are otherwise ignored, for clients that send `Prefer: handling=strict`
 * (RFC 7240).
 */
export function offerStrictHandling(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, reply, done) => {
    const { prefer } = request.headers;
    if (prefer === undefined || !prefersStrictHandling(prefer)) return done();
    void reply.header('preference-applied', 'handling=strict');
    const { query, body } = schemasFor(request);
    const faults: Fault[] = [
      ...unknownParameters(request.query as object, query).map((parameter) => ({
        parameter,
        detail: 'is not a known parameter',
      })),
      ...unknownFields(request.body, body, '').map((pointer) => ({ pointer, detail: 'is not a known field' })),
    ];
    if (faults.length === 0) return done();
    return done(new RequestError('request.unknown_field', { faults: faults.slice(0, maxFaults) }));
  });
}

/** If a preference is repeated, the first one counts (RFC 7240 section 2). */
export function prefersStrictHandling(header: string | string[]): boolean {
  const preferences = [header]
    .flat()
    .join(',')
    .split(',')
    .map((preference) => preference.split(';', 1)[0]!.replaceAll(/[\s"]/g, '').toLowerCase());
  return preferences.find((preference) => preference.split('=', 1)[0] === 'handling') === 'handling=strict';
}

function unknownParameters(query: object, schema: BodySchema): string[] {
  return Object.keys(query).filter((name) => !Object.hasOwn(schema.properties ?? {}, name));
}

/** JSON pointers to the fields that the schema does not know. The contents of such a field are not checked. */
function unknownFields(value: unknown, schema: BodySchema, pointer: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value))
    return schema.items === undefined
      ? []
      : value.flatMap((each, index) => unknownFields(each, schema.items!, `${pointer}/${index}`));
  const fields = fieldsOf(value, schema);
  // This object may have any fields.
  if (fields === undefined) return [];
  return Object.entries(value).flatMap(([name, each]) => {
    const path = `${pointer}/${escapePointer(name)}`;
    return Object.hasOwn(fields, name) ? unknownFields(each, fields[name]!, path) : [path];
  });
}
