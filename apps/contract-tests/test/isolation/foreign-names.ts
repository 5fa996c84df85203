import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repositoryRoot } from '@scheduling/stack';
import { fieldSchemas, type Place } from '@scheduling/test-stack/api-document';
import { apiDocument } from '@scheduling/test-stack/client';
import type { TestCrm } from '@scheduling/test-stack/crm';
import { newReference, type Request, type World } from './operation-cases.ts';

/** Names with values, which a request may have where they have no meaning. */
export type Names = Record<string, unknown>;

const { document } = await apiDocument();
const messageFields = await readMessageFields();

/** The names of the API and of all messages, with the values of a victim. */
export function namesOf(world: World, { crmId }: TestCrm): Names {
  const kinds = Object.entries(world).flatMap(([kind, value]) =>
    [`${kind}Ref`, `${kind}Reference`, `${kind}Id`].map((name) => [name, value]),
  );
  const known: Names = {
    ...Object.fromEntries(kinds),
    crmId,
    reference: world.participation,
    ownerReference: world.user,
    contactReference: world.user,
    newCustomerReference: newReference(),
  };
  const ofMessages = messageFields.flatMap(({ name, type }) => {
    const value = known[toCamelCase(name)] ?? valueOf(type);
    return [name, toCamelCase(name)].map((each) => [each, value]);
  });
  return { ...Object.fromEntries(ofMessages), ...known };
}

function valueOf(type: string): unknown {
  if (type === 'string') return 'x';
  if (type === 'bool') return true;
  if (/^(?:u?int|double)/.test(type)) return 1;
  return {};
}

/**
 * Adds names to the query and to every object of the body, except those that the operation has there. A GET has no
 * body.
 */
export function withNames(place: Place, request: Request, names: Names): Request {
  const schema = place.operation.requestBody?.content['application/json'].schema;
  return {
    ...request,
    query: { ...asStrings(without(names, queryParameters(place))), ...request.query },
    ...(place.method !== 'get' && {
      body: addNames(request.body ?? {}, [schema], names) as NonNullable<Request['body']>,
    }),
  };
}

function addNames(value: unknown, schemas: unknown[], names: Names): unknown {
  const resolved = schemas.flatMap((schema) => fieldSchemas(schema, document));
  if (Array.isArray(value))
    return value.map((each) =>
      addNames(
        each,
        resolved.map(({ items }) => items),
        names,
      ),
    );
  if (typeof value !== 'object' || value === null) return value;
  const documented = (name: string): unknown[] =>
    resolved.flatMap(({ properties = {} }) => (Object.hasOwn(properties, name) ? [properties[name]] : []));
  const given = Object.entries(value).map(([name, each]) => [name, addNames(each, documented(name), names)]);
  return {
    ...without(
      names,
      Object.keys(names).filter((name) => documented(name).length > 0),
    ),
    ...Object.fromEntries(given),
  };
}

function without(names: Names, excluded: string[]): Names {
  return Object.fromEntries(Object.entries(names).filter(([name]) => !excluded.includes(name)));
}

function asStrings(names: Names): Record<string, string> {
  return Object.fromEntries(
    Object.entries(names).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}

export function queryParameters({ operation }: Place): string[] {
  return (operation.parameters ?? []).filter((parameter) => parameter.in === 'query').map(({ name }) => name);
}

/** A field of a message between services. */
interface MessageField {
  /** As in the `.proto` file. */
  name: string;
  type: string;
}

/** The fields of all messages between services, each name once. */
async function readMessageFields(): Promise<MessageField[]> {
  const fields = new Map<string, MessageField>();
  for await (const file of glob('proto/scheduling/*/v1/*.proto', { cwd: repositoryRoot })) {
    const text = await readFile(join(repositoryRoot, file), 'utf8');
    for (const [, type, name] of text.matchAll(/^\s*(?:optional |repeated )?([\w.]+|map<.+>) (\w+) = \d+/gm))
      fields.set(name!, { name: name!, type: type! });
  }
  return [...fields.values()];
}

/** The name in the code generated for it. */
function toCamelCase(name: string): string {
  return name.replaceAll(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase());
}
