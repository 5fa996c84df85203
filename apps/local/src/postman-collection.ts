import type { CollectionResult } from 'openapi-to-postmanv2';

/** The parts of a collection (version 2.1) that are adapted. */
export interface PostmanCollection {
  variable: Variable[];
  item: PostmanItem[];
}

export interface PostmanItem {
  name: string;
  /** Of a folder. */
  item?: PostmanItem[];
  request?: { url: { path: string[]; query?: Field[]; variable?: Variable[] }; header?: Field[] };
  response?: { code: number }[];
}

interface Variable {
  key: string;
  value: string;
}

interface Field extends Variable {
  disabled?: boolean;
  description?: { content: string };
}

/** The names in the examples of the document, as variables of the collection. */
const references: Record<string, string> = {
  userRef: '4711@acme',
  accountRef: 'main@acme',
  providerRef: 'workshop@acme',
  resourceRef: 'room-1@acme',
  timeslotRef: 't-1@acme',
  blockRef: 'block-1@acme',
  appointmentRef: 'a-1@acme',
  participationRef: 'b-2@acme',
  customerRef: 'c-1@acme',
  calendarRef: 'cal-1@acme',
  webhookRef: 'w-1@acme',
  erasureId: '',
  mailId: '',
  invitationId: '',
};

/**
 * Converts the API document. Each request has the first example as its body, a new `Idempotency-Key`, optional
 * parameters turned off, and references that are variables of the collection.
 *
 * @param settings further variables of the collection
 */
export async function toPostmanCollection(
  document: string,
  settings: Record<'baseUrl' | 'crmId' | 'apiKey', string>,
): Promise<PostmanCollection> {
  const collection = await convert(document);
  for (const item of collection.item.flatMap(requestsIn)) adapt(item);
  return {
    ...collection,
    variable: Object.entries({ ...settings, ...references }).map(([key, value]) => ({ key, value })),
  };
}

async function convert(document: string): Promise<PostmanCollection> {
  // The converter looks for it, and Node warns about that, because it has no file for it.
  Reflect.deleteProperty(globalThis, 'localStorage');
  const { default: converter } = await import('openapi-to-postmanv2');
  const options = { folderStrategy: 'Tags', parametersResolution: 'Example' } as const;
  const result = await new Promise<CollectionResult>((resolve, reject) => {
    converter.convertV2({ type: 'json', data: JSON.parse(document) as object }, options, (error, converted) =>
      converted === undefined ? reject(error!) : resolve(converted),
    );
  });
  return result.output![0]!.data as unknown as PostmanCollection;
}

function requestsIn(item: PostmanItem): PostmanItem[] {
  return item.item?.flatMap(requestsIn) ?? [item];
}

function adapt(item: PostmanItem): void {
  const { url, header = [] } = item.request!;
  for (const variable of url.variable ?? []) variable.value = `{{${variableOf(variable.key, url.path)}}}`;
  for (const parameter of url.query ?? [])
    parameter.disabled = !parameter.description?.content.startsWith('(Required)');
  for (const field of header) {
    if (field.key === 'Prefer') Object.assign(field, { value: 'handling=strict', disabled: true });
    if (field.key === 'idempotency-key') Object.assign(field, { key: 'Idempotency-Key', value: '{{$guid}}' });
  }
  item.response = item.response?.filter(({ code }) => code < 300) ?? [];
}

/** The parameter `reference` means the resource before it. */
function variableOf(parameter: string, path: string[]): string {
  return parameter === 'reference' ? `${path[path.indexOf(':reference') - 1]}Ref` : parameter;
}
