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

/** The answer with an entity that is JSON already, and others beside it. */
export function wrapJson(name: string, json: Buffer | string, beside: Record<string, object> = {}): string {
  const { before, after } = wrapperOf(name);
  const others = Object.entries(beside).map(([other, value]) => `,"${other}":${JSON.stringify(value)}`);
  return before + json.toString() + others.join('') + after;
}
