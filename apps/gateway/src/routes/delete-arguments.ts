import { invalidRequest } from '../problem.ts';

/** The arguments of a DELETE: in its body or, because some proxies drop that, in its query. */
type Arguments = Record<string, unknown> | null | undefined;

/** The argument from the body or the query, undefined when it is in neither. Two different values are rejected. */
export function singleArgument(name: string, body: Arguments, query: Arguments): string | undefined {
  const [inBody, inQuery] = [textOf(body, name), textOf(query, name)];
  if (inBody !== undefined && inQuery !== undefined && inBody !== inQuery) {
    throw invalidRequest([{ pointer: `/${name}`, detail: 'has different values in the body and the query' }]);
  }
  return inBody ?? inQuery;
}

/** The same for a required argument. */
export function requiredArgument(name: string, body: Arguments, query: Arguments): string {
  const value = singleArgument(name, body, query);
  if (value === undefined) throw invalidRequest([{ pointer: `/${name}`, detail: 'is required' }]);
  return value;
}

function textOf(from: Arguments, name: string): string | undefined {
  const value = from?.[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
