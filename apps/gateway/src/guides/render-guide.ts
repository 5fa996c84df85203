import { basePathOf } from '@scheduling/http';
import { Marked, Renderer, type Tokens } from 'marked';
import { getHeadingList, gfmHeadingId } from 'marked-gfm-heading-id';
import { renderPage } from '../html-page.ts';
import type { Guide, Guides } from './read-guides.ts';

/** Fewer sections than these need no table of contents. */
const longSections = 3;

/** The page of a guide: its contents, the text, and the guides before and after it. */
export function renderGuide(guide: Guide, { index, ordered }: Guides, publicUrl: string): string {
  const guidesPath = `${basePathOf(publicUrl)}/guides`;
  const address = (name: string): string => (name === index.name ? guidesPath : `${guidesPath}/${name}`);
  const marked = new Marked(gfmHeadingId(), { renderer: createRenderer(address) });
  const content = marked.parse(guide.markdown);
  const sections = getHeadingList().filter(({ level }) => level === 2);
  const place = ordered.indexOf(guide);
  const link = (neighbour: Guide | undefined) =>
    neighbour && { title: neighbour.title, address: address(neighbour.name) };
  return renderPage('guide', {
    language: 'en',
    title: guide.title,
    basePath: basePathOf(publicUrl),
    content,
    sections: sections.length < longSections ? [] : sections,
    previous: link(ordered[place - 1]),
    next: link(guide === index ? ordered[0] : place === -1 ? undefined : ordered[place + 1]),
    isIndex: guide === index,
    source: `${guidesPath}/${guide.name}.md`,
  });
}

/**
 * Whatever is too wide can be scrolled, with the keyboard, too. Long lines of requests and responses wrap between the
 * parts of JSON and of queries, and never within a word. Those of programs do not wrap, because their indentation shows
 * what belongs together.
 */
function createRenderer(address: (name: string) => string): Partial<Renderer> {
  let tables = 0;
  return {
    link({ href, tokens }: Tokens.Link): string {
      const [, name, anchor = ''] = /^([\w-]+)\.md(#.+)?$/.exec(href) ?? [];
      const target = name === undefined ? href : address(name) + anchor;
      return `<a href="${target}">${(this as Renderer).parser.parseInline(tokens)}</a>`;
    },
    table(token: Tokens.Table): string {
      tables += 1;
      return `<div class="scroll" tabindex="0" role="region" aria-label="Table ${tables}">${Renderer.prototype.table.call(this as Renderer, token)}</div>`;
    },
    code(token: Tokens.Code): string {
      const html = Renderer.prototype.code.call(this as Renderer, token);
      const kind = kindOf(token.lang ?? '');
      const wrapped = html.replace(/<pre>(<code.*?>)(.*)<\/code>/s, (_html: string, start: string, code: string) => {
        return `<pre tabindex="0">${start}${kind === 'program' ? code : keepWords(code)}</code>`;
      });
      return `<div class="code ${kind}">${wrapped}</div>`;
    },
    codespan(token: Tokens.Codespan): string {
      return Renderer.prototype.codespan.call(this as Renderer, token).replaceAll(/(?<=\w)[/_](?=[\w:])/g, '$&<wbr>');
    },
    checkbox: () => '☐ ',
  };
}

function kindOf(language: string): 'output' | 'program' | 'request' {
  if (['json', 'text'].includes(language)) return 'output';
  return ['', 'sh', 'http'].includes(language) ? 'request' : 'program';
}

/** Browsers would break lines after a hyphen, which references and dates have. */
function keepWords(code: string): string {
  return code
    .split(/(?<=,)(?=\S)|(?<=&amp;)(?=\w)|(?<=\s)|(?=\s)/)
    .map((word) => (word.includes('-') ? `<span class="word">${word}</span>` : word))
    .join('<wbr>');
}
