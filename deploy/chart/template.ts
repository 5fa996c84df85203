import { stringify } from 'yaml';

/** Helm reads YAML 1.1, in which `yes` is a boolean. */
export const helmYaml = { version: '1.1', lineWidth: 0 } as const;

/** What a template of Helm contains at one place of a manifest. */
export type Node = string | number | boolean | null | Expression | Inserted | Optional | Node[] | Fields;
export type Fields = { [key: string]: Node };

/** One value, which Helm computes. */
export class Expression {
  readonly code: string;
  constructor(code: string) {
    this.code = code;
  }
}

/** An object or a list that Helm computes, as the value of a field; or the items of a list among others. */
export class Inserted {
  readonly code: string;
  constructor(code: string) {
    this.code = code;
  }
}

/** Included only under a condition: an item of a list, a field, or a whole manifest. */
export class Optional {
  readonly condition: string;
  readonly content: Node;
  constructor(condition: string, content: Node) {
    this.condition = condition;
    this.content = content;
  }
}

export function isFields(node: Node): node is Fields {
  return (
    typeof node === 'object' &&
    node !== null &&
    !Array.isArray(node) &&
    !(node instanceof Expression || node instanceof Inserted || node instanceof Optional)
  );
}

/** What a manifest has at a place, by the keys and indexes that lead there. */
export function readAt(manifest: Fields, path: string[]): Node {
  return path.reduce<Node>((node, key) => (node as Fields | null)?.[key] ?? null, manifest);
}

/**
 * Puts something at a place of a manifest.
 *
 * @param path the last part may be `-`, for a new item at the end of a list
 */
export function replaceAt(manifest: Fields, path: string[], value: Node): void {
  const parent = readAt(manifest, path.slice(0, -1));
  const last = path.at(-1)!;
  if (Array.isArray(parent) && last === '-') parent.push(value);
  else if (typeof parent === 'object' && parent !== null) (parent as Fields)[last] = value;
  else throw new Error(`There is no ${path.join('.')}`);
}

/** Writes a manifest as a template. */
export function writeTemplate(manifest: Node): string {
  if (manifest instanceof Optional)
    return `${enclose(manifest.condition, [writeTemplate(manifest.content).trimEnd()]).join('\n')}\n`;
  return `---\n${writeFields(manifest as Fields, 0).join('\n')}\n`;
}

function writeFields(fields: Fields, indent: number): string[] {
  return Object.entries(fields).flatMap(([key, value]) => writeField(key, value, indent));
}

function writeField(key: string, value: Node, indent: number): string[] {
  const start = `${' '.repeat(indent)}${writeText(key)}:`;
  if (value instanceof Optional) return enclose(value.condition, writeField(key, value.content, indent));
  if (value instanceof Expression) return [`${start} {{ ${value.code} }}`];
  if (value instanceof Inserted) return [start, insert(value, indent + 2)];
  if (Array.isArray(value)) return writeList(start, value, indent + 2);
  return isFields(value) ? [start, ...writeFields(value, indent + 2)] : [`${start} ${writeScalar(value)}`];
}

/** Without items, the whole field is absent: `field:` alone would be null. */
function writeList(start: string, items: Node[], indent: number): string[] {
  const lines = items.length === 0 ? [`${start} []`] : [start, ...writeItems(items, indent)];
  const conditions = items.map((item) =>
    item instanceof Optional ? `(${item.condition})` : item instanceof Inserted ? `(${item.code})` : undefined,
  );
  if (items.length === 0 || conditions.includes(undefined)) return lines;
  return enclose(`or ${[...new Set(conditions)].join(' ')}`, lines);
}

function writeItems(items: Node[], indent: number): string[] {
  const conditionOf = (item: Node | undefined): string | undefined =>
    item instanceof Optional ? item.condition : undefined;
  return items.flatMap((item, index) => {
    const lines = writeItem(item, indent);
    const condition = conditionOf(item);
    if (condition === undefined) return lines;
    // Neighbours with the same condition share it.
    return lines.slice(
      condition === conditionOf(items[index - 1]) ? 1 : 0,
      condition === conditionOf(items[index + 1]) ? -1 : undefined,
    );
  });
}

function writeItem(item: Node, indent: number): string[] {
  const start = `${' '.repeat(indent)}-`;
  if (item instanceof Optional) return enclose(item.condition, writeItem(item.content, indent));
  if (item instanceof Expression) return [`${start} {{ ${item.code} }}`];
  if (item instanceof Inserted) return enclose(item.code, [insert(item, indent)]);
  if (Array.isArray(item)) throw new Error('No manifest has a list within a list');
  if (!isFields(item)) return [`${start} ${writeScalar(item)}`];
  const [first = '', ...rest] = writeFields(item, indent + 2);
  return first.startsWith('{{') ? [start, first, ...rest] : [`${start} ${first.trimStart()}`, ...rest];
}

function enclose(condition: string, lines: string[]): string[] {
  return [`{{- if ${condition} }}`, ...lines, '{{- end }}'];
}

function insert({ code }: Inserted, indent: number): string {
  return `{{- toYaml ${code} | nindent ${indent} }}`;
}

function writeScalar(value: string | number | boolean | null): string {
  return typeof value === 'string' ? writeText(value) : String(value);
}

/** In double quotes where necessary, and with braces that Helm leaves as they are. */
function writeText(text: string): string {
  const written =
    text.includes('\n') || text.includes('{{') ? JSON.stringify(text) : stringify(text, helmYaml).trimEnd();
  return written.replaceAll('{{', '{{ "{{" }}');
}
