import { isOnThisMachine } from '@scheduling/runtime';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A guide as the gateway serves it. */
export interface Guide {
  /** As in its address. */
  name: string;
  title: string;
  /** Without the title. Links lead to other guides, as `booking.md`. */
  markdown: string;
}

export interface Guides {
  /** The page with the table of all guides. */
  index: Guide;
  /** In the order in which they are read. */
  ordered: Guide[];
  /** To look things up. */
  references: Guide[];
}

/** The repository, or the folder of the image that has the same files. */
const root = fileURLToPath(new URL('../../../..', import.meta.url));
const folder = join(root, 'docs/guides');
const quickStart = { name: 'quick-start', file: join(root, 'README.md'), heading: 'Five minutes' };

/**
 * Reads the guides for integrators from the same files that the repository has. Requests in them go to the public
 * address of this gateway, and links to files of the repository that are not served are plain text.
 */
export function readGuides(publicUrl: string): Guides {
  const index = readFileSync(join(folder, 'README.md'), 'utf8');
  const names = [...index.matchAll(/^\| \[[^\]]+\]\(([\w-]+)\.md\)/gm)].map(([, name]) => name!);
  const references = new Map([
    ['interface', join(root, 'docs/interface.md')],
    ['client', join(root, 'libs/client/README.md')],
    ['python-client', join(root, 'clients/python/README.md')],
    ['java-client', join(root, 'clients/java/README.md')],
    ['go-client', join(root, 'clients/go/README.md')],
  ]);
  const files = new Map([
    ['README', join(folder, 'README.md')],
    ...names.map((name) => [name, join(folder, `${name}.md`)] as const),
    ...references,
  ]);
  const adapt = (markdown: string, file: string): string =>
    addressRequests(rewriteLinks(markdown, file, files), publicUrl);
  const read = (name: string): Guide => {
    const file = files.get(name)!;
    const [, title = '', markdown = ''] = /^# ([^\n]+)\n(.*)$/s.exec(readFileSync(file, 'utf8'))!;
    return { name, title, markdown: adapt(markdown, file) };
  };
  return {
    index: read('README'),
    ordered: [
      { name: quickStart.name, title: 'Quick start', markdown: adapt(readQuickStart(), quickStart.file) },
      ...names.map(read),
    ],
    references: [...references.keys()].map(read),
  };
}

/** The section of the README. */
function readQuickStart(): string {
  const readme = readFileSync(quickStart.file, 'utf8');
  return new RegExp(`^## ${quickStart.heading}\n(.*?)^## `, 'ms').exec(readme)![1]!;
}

/** Outside of code, because only links are meant. */
function rewriteLinks(markdown: string, file: string, files: Map<string, string>): string {
  return markdown
    .split(/(^```.*?^```$)/ms)
    .map((part) =>
      part.startsWith('```')
        ? part
        : part.replaceAll(/(?<!!)\[([^\]]+)\]\(([^)\s]+)\)/g, (_link, text: string, href: string) => {
            const target = servedAddress(href, file, files);
            return target === undefined ? text : `[${text}](${target})`;
          }),
    )
    .join('');
}

/** Undefined if the target is not served. */
function servedAddress(href: string, file: string, files: Map<string, string>): string | undefined {
  if (/^(https?:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#', 2);
  const target = resolve(file, '..', path);
  if (target === quickStart.file && anchor === 'five-minutes') return `${quickStart.name}.md`;
  const name = [...files].find(([, source]) => source === target)?.[0];
  if (name === undefined) return undefined;
  return anchor === undefined ? `${name}.md` : `${name}.md#${anchor}`;
}

/** The settings that begin the guides are those of `npm start`; elsewhere readers have their own. */
function addressRequests(markdown: string, publicUrl: string): string {
  const addressed = markdown.replaceAll('http://127.0.0.1:8080', publicUrl);
  if (isOnThisMachine(publicUrl)) return addressed.replaceAll(/<!-- (?:npm start|\/) -->/g, '');
  return addressed
    .replaceAll(/<!-- npm start -->.*?<!-- \/ -->/gs, '')
    .replaceAll(/\bCRM=demo\b/g, 'CRM=acme')
    .replaceAll(/\bKEY=("?)\$\(cat \.data\/demo-key\)\1/g, 'KEY=sk_…');
}
