import { apiInfoValue } from '../schemas.ts';

/** What is sent before and after JSON. */
export interface Wrapper {
  before: string;
  after: string;
}

/** Around the JSON of an entity: `{ "api-info": …, "<entity>": … }` (interface 1). */
export function wrapperOf(name: string): Wrapper {
  return { before: `{"api-info":${JSON.stringify(apiInfoValue)},"${name}":`, after: '}' };
}

/** The answer with an entity that is JSON already. */
export function wrapJson(name: string, json: Buffer | string): string {
  const { before, after } = wrapperOf(name);
  return before + json.toString() + after;
}
