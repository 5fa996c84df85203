import { FetchingJSONSchemaStore, InputData, JSONSchemaInput, quicktype } from 'quicktype-core';

interface Body {
  schema?: object;
  examples?: Record<string, { value?: unknown; $ref?: string }>;
  example?: unknown;
}

interface Operation {
  operationId: string;
  requestBody?: { content: Record<string, Body> };
  responses: Record<string, { content?: Record<string, Body> }>;
}

export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: object; examples?: Record<string, { value: unknown }> };
}

/** The JSON body of a request, or of a response that is not a problem. */
export interface JsonBody {
  /** `CreateUserRequest`, `CreateUserResponse201`. */
  name: string;
  schema: object;
  examples: unknown[];
}

export function operationsOf(document: Document): Operation[] {
  return Object.values(document.paths).flatMap((operations) => Object.values(operations));
}

export function bodiesOf(document: Document, { operationId, requestBody, responses }: Operation): JsonBody[] {
  const operation = operationId.replace(/^./, (letter) => letter.toUpperCase());
  const bodies = [
    [`${operation}Request`, requestBody?.content],
    ...Object.entries(responses).map(([status, { content }]) => [`${operation}Response${status}`, content] as const),
  ] as const;
  return bodies.flatMap(([name, content]) => {
    const body = content?.['application/json'];
    return body?.schema ? [{ name, schema: body.schema, examples: examplesOf(document, body) }] : [];
  });
}

function examplesOf({ components }: Document, { example, examples = {} }: Body): unknown[] {
  const named = Object.values(examples).map(({ value, $ref }) =>
    $ref ? components.examples?.[$ref.split('/').at(-1)!]!.value : value,
  );
  return example === undefined ? named : [example, ...named];
}

/**
 * A class of Python for each of the bodies, which needs nothing but the standard library. Instants stay text, as the
 * API has them.
 */
export async function generatePythonTypes({ components: { schemas } }: Document, bodies: JsonBody[]): Promise<string> {
  const definitions = Object.fromEntries(bodies.map(({ name, schema }) => [name, schema]));
  const inputData = new InputData();
  const schema = JSON.stringify({ definitions, components: { schemas } });
  await inputData.addSource(
    'schema',
    { name: 'Scheduling', uris: ['#/definitions/'], schema },
    () => new JSONSchemaInput(new FetchingJSONSchemaStore()),
  );
  const { lines } = await quicktype({
    inputData,
    lang: 'python',
    rendererOptions: { 'python-version': '3.7' },
    inferDateTimes: false,
    inferUuids: false,
  });
  return lines.join('\n');
}
