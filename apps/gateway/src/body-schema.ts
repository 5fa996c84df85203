import type { FastifyRequest } from 'fastify';
import { given } from './fields.ts';

/** The parts of a schema that define which fields a request can have, how long they may be, and in which format. */
export interface BodySchema {
  type?: string | string[];
  properties?: Record<string, BodySchema>;
  /** Of an object whose fields have any names. */
  additionalProperties?: BodySchema;
  maxProperties?: number;
  items?: BodySchema;
  maxItems?: number;
  maxLength?: number;
  format?: string;
  if?: { required: string[] };
  then?: BodySchema;
  else?: BodySchema;
}

/** What the route of a request says about its query and its body. What it does not mention has no fields. */
export function schemasFor({ routeOptions }: FastifyRequest): { query: BodySchema; body: BodySchema } {
  const { querystring, body } = (routeOptions.schema ?? {}) as { querystring?: BodySchema; body?: BodySchema };
  return { query: querystring ?? nothing, body: body ?? nothing };
}

const nothing: BodySchema = { properties: {} };

/**
 * The fields that this object can have; undefined if it may have any. For a body of one of two kinds: the fields of its
 * kind, and those of the other kind that are null or empty, which means that they are absent.
 */
export function fieldsOf(value: object, schema: BodySchema): Record<string, BodySchema> | undefined {
  const { additionalProperties } = schema;
  if (additionalProperties !== undefined)
    return Object.fromEntries(Object.keys(value).map((name) => [name, additionalProperties]));
  if (schema.if === undefined) return schema.properties;
  const [field = ''] = schema.if.required;
  const isAbsent = (name: string): boolean => given((value as Record<string, unknown>)[name]) === undefined;
  const [kind, other] = isAbsent(field) ? [schema.else, schema.then] : [schema.then, schema.else];
  const absent = Object.entries(other?.properties ?? {}).filter(([name]) => isAbsent(name));
  return { ...Object.fromEntries(absent), ...kind?.properties };
}

/** RFC 6901 section 3. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
