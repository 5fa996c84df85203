import { folders, references, type Step } from './collection-steps.ts';

/** The parts of the API document that are read. */
export interface ApiDocument {
  info: { title: string; description: string };
  paths: Record<string, Record<string, Operation>>;
}

interface Operation {
  summary: string;
  description?: string;
  parameters: { in: string; name: string; description?: string; required?: boolean; schema: { type?: string } }[];
  requestBody?: {
    content: { 'application/json': { example?: unknown; examples?: Record<string, { value: unknown }> } };
  };
}

const crmPath = '/crms/{crmId}';

/**
 * The API document as a collection that Postman, Bruno, Insomnia and Hoppscotch import (Postman Collection 2.1): every
 * operation, in an order in which all of them succeed in an empty sandbox, with names that are variables.
 */
export function writeCollection(document: ApiDocument, publicUrl: string): object {
  const { title, description } = document.info;
  return {
    info: {
      name: title,
      description: `${description}\n\nSet the variables \`crmId\` and \`apiKey\`, preferably of a sandbox. Its requests can be sent one after the other.`,
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: 'X-SERVICE-CLIENT-ID' },
        { key: 'value', value: '{{apiKey}}' },
        { key: 'in', value: 'header' },
      ],
    },
    variable: Object.entries({ baseUrl: publicUrl, crmId: '', apiKey: '', ...references }).map(([key, value]) => ({
      key,
      value,
    })),
    item: folders.map(([name, steps]) => ({
      name,
      item: steps.map((step) => writeRequest(typeof step === 'string' ? { operation: step } : step, document)),
    })),
  };
}

function writeRequest(step: Step, document: ApiDocument): object {
  const [method = '', path = ''] = step.operation.split(' ');
  const operation = document.paths[crmPath + path]![method.toLowerCase()]!;
  const body = step.body ?? firstExample(operation);
  return {
    name: step.name ?? operation.summary,
    request: {
      method,
      header: method === 'POST' ? [{ key: 'Idempotency-Key', value: '{{$guid}}' }] : [],
      ...(body !== undefined && {
        body: { mode: 'raw', raw: JSON.stringify(body, null, 2), options: { raw: { language: 'json' } } },
      }),
      url: addressOf(path, operation, step),
      description: operation.description,
    },
    event: [
      ...(step.sets === undefined ? [] : [eventOf('prerequest', settingsOf(step.sets))]),
      eventOf('test', checkOf(step)),
    ],
  };
}

function firstExample({ requestBody }: Operation): unknown {
  const media = requestBody?.content['application/json'];
  return media?.example ?? Object.values(media?.examples ?? {})[0]?.value;
}

function addressOf(path: string, { parameters }: Operation, { path: names = {}, query = {} }: Step): object {
  const parts = `${crmPath}${path}`.slice(1).split('/');
  const resolved = parts.map((part, index) => {
    const [, parameter] = /^\{(.+)\}$/.exec(part) ?? [];
    if (parameter === undefined) return part;
    // The parameter `reference` is that of the resource before it.
    return `{{${names[parameter] ?? (parameter === 'reference' ? `${parts[index - 1]}Ref` : parameter)}}}`;
  });
  const sent = Object.entries(query).map(([key, value]) => `${key}=${value}`);
  return {
    raw: `{{baseUrl}}/${resolved.join('/')}${sent.length === 0 ? '' : `?${sent.join('&')}`}`,
    host: ['{{baseUrl}}'],
    path: resolved,
    query: parameters
      .filter((parameter) => parameter.in === 'query')
      .map(({ name, description }) => ({
        key: name,
        value: query[name] ?? '',
        description,
        disabled: query[name] === undefined,
      })),
  };
}

function eventOf(listen: 'prerequest' | 'test', exec: string[]): object {
  return { listen, script: { type: 'text/javascript', exec } };
}

function settingsOf(sets: Record<string, string>): string[] {
  return Object.entries(sets).map(([name, expression]) => `pm.collectionVariables.set('${name}', ${expression});`);
}

/** A test of the response, which also keeps what later requests need. Mails, for instance, exist a moment later. */
function checkOf({ keeps = {} }: Step): string[] {
  return [
    "pm.test('succeeds', () => pm.expect(pm.response.code).to.be.within(200, 299));",
    ...Object.entries(keeps).flatMap(([variable, expression]) => [
      'if (pm.response.code < 300) {',
      '  const body = pm.response.json();',
      `  const value = ${expression};`,
      "  const tries = Number(pm.variables.get('tries') ?? 0);",
      `  if (value !== undefined) pm.collectionVariables.set('${variable}', value);`,
      '  else if (tries < 100) {',
      "    pm.variables.set('tries', tries + 1);",
      '    pm.execution.setNextRequest(pm.info.requestName);',
      '  }',
      '}',
    ]),
  ];
}
