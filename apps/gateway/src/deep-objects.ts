import type { FastifyInstance } from 'fastify';
import { schemasFor } from './body-schema.ts';

/**
 * Makes one object of the parameters of a query that are its members (`metadata[tier]=gold&metadata[shop]=7`), if the
 * schema of the route has an object by that name.
 */
export function readDeepObjects(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, _reply, done) => {
    for (const [name, schema] of Object.entries(schemasFor(request).query.properties ?? {}))
      if (schema.type === 'object') request.query = withMembers(request.query as Record<string, unknown>, name);
    done();
  });
}

/** A parameter with the bare name is no object, and is left for the validation to reject. */
function withMembers(query: Record<string, unknown>, name: string): Record<string, unknown> {
  const [members, others] = [[], []] as [[string, unknown][], [string, unknown][]];
  for (const [parameter, value] of Object.entries(query)) {
    const isMember = parameter.startsWith(`${name}[`) && parameter.endsWith(']');
    if (isMember) members.push([parameter.slice(name.length + 1, -1), value]);
    else others.push([parameter, value]);
  }
  if (members.length === 0 || Object.hasOwn(query, name)) return query;
  return { ...Object.fromEntries(others), [name]: Object.fromEntries(members) };
}
