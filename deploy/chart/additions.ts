import { isDeepStrictEqual } from 'node:util';
import { isFields, type Node } from './template.ts';

/** Something that a component adds to a manifest: the field of an object, or an item at the end of a list. */
export interface Addition {
  path: string[];
  content: Node;
}

/**
 * What one rendering has in addition to another one. Throws if it lacks something or has something else at its place: a
 * template could not express that.
 */
export function findAdditions(plain: Node, extended: Node, path: string[] = []): Addition[] {
  if (Array.isArray(plain) && Array.isArray(extended)) {
    const added = extended.slice(plain.length).map((content) => ({ path: [...path, '-'], content }));
    return [
      ...plain.flatMap((item, index) => findAdditions(item, extended[index] ?? null, [...path, String(index)])),
      ...added,
    ];
  }
  if (isFields(plain) && isFields(extended)) {
    const keys = new Set([...Object.keys(plain), ...Object.keys(extended)]);
    return [...keys].flatMap((key) =>
      key in plain
        ? findAdditions(plain[key]!, extended[key] ?? null, [...path, key])
        : [{ path: [...path, key], content: extended[key]! }],
    );
  }
  if (!isDeepStrictEqual(plain, extended))
    throw new Error(`${path.join('.')} is ${JSON.stringify(extended)} instead of ${JSON.stringify(plain)}`);
  return [];
}
