import { basePathOf } from '@scheduling/http';
import type { FastifyInstance } from 'fastify';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked, Renderer, type Tokens } from 'marked';
import { gfmHeadingId } from 'marked-gfm-heading-id';
import { renderPage, sendPage } from './html-page.ts';
import { RequestError } from './problem.ts';

/** The repository, or the folder of the image that has the same files. */
const root = fileURLToPath(new URL('../../..', import.meta.url));
const indexPage = 'README';

/** The file of each page, by the name of the page. */
type Sources = Map<string, string>;

/**
 * Shows the guides for integrators at `/guides`, made of the same files that the repository has, and the interface and
 * the clients beside them.
 */
export function serveGuides(app: FastifyInstance, publicUrl: string): void {
  const basePath = basePathOf(publicUrl);
  let sources: Sources | undefined;
  const rendered = new Map<string, string>();
  app.get<{ Params: { page?: string } }>('/guides/:page?', { schema: { hide: true } }, async ({ params }, reply) => {
    sources ??= findSources();
    const page = params.page ?? indexPage;
    if (!sources.has(page)) throw new RequestError('route.not_found');
    const html = rendered.get(page) ?? renderGuide(page, sources, basePath);
    rendered.set(page, html);
    return sendPage(reply, 200, html);
  });
}

function findSources(): Sources {
  const folder = join(root, 'docs/guides');
  return new Map([
    ...readdirSync(folder).map((file) => [basename(file, '.md'), join(folder, file)] as const),
    ['interface', join(root, 'docs/interface.md')],
    ['client', join(root, 'libs/client/README.md')],
    ['python-client', join(root, 'clients/python/README.md')],
  ]);
}

function renderGuide(page: string, sources: Sources, basePath: string): string {
  const file = sources.get(page)!;
  const markdown = readFileSync(file, 'utf8');
  const [, title] = /^# (.+)$/m.exec(markdown)!;
  const marked = new Marked(gfmHeadingId(), {
    renderer: createRenderer((href) => addressOf(href, { file, sources, basePath })),
  });
  const content = marked.parse(markdown.replace(/^# .+\n/m, ''));
  return renderPage('guide', { language: 'en', title: title!, basePath, content, isIndex: page === indexPage });
}

/**
 * A link leads to another page, or is shown as text. A table that is too wide can be scrolled, with the keyboard, too.
 */
function createRenderer(addressOfLink: (href: string) => string | undefined): Partial<Renderer> {
  let tables = 0;
  return {
    link({ href, tokens }: Tokens.Link): string {
      const text = (this as Renderer).parser.parseInline(tokens);
      const address = addressOfLink(href);
      return address === undefined ? text : `<a href="${address}">${text}</a>`;
    },
    table(token: Tokens.Table): string {
      tables += 1;
      return `<div class="scroll" tabindex="0" role="region" aria-label="Table ${tables}">${Renderer.prototype.table.call(this as Renderer, token)}</div>`;
    },
    checkbox: () => '☐ ',
  };
}

/** Undefined if the target is not among the pages. */
function addressOf(
  href: string,
  { file, sources, basePath }: { file: string; sources: Sources; basePath: string },
): string | undefined {
  if (/^(https?:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#', 2);
  const target = resolve(file, '..', path);
  const page = [...sources].find(([, source]) => relative(source, target) === '')?.[0];
  if (page === undefined) return undefined;
  return `${basePath}/guides${page === indexPage ? '' : `/${page}`}${anchor === undefined ? '' : `#${anchor}`}`;
}
