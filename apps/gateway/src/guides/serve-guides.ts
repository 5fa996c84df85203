import type { FastifyInstance } from 'fastify';
import { sendPage } from '../html-page.ts';
import { RequestError } from '../problem.ts';
import { makeOnce, renderedFile, sendFile } from '../rendered-files.ts';
import { writeLlmsText } from './llms-text.ts';
import { type Guide, type Guides, readGuides } from './read-guides.ts';
import { renderGuide } from './render-guide.ts';

/**
 * Serves the guides for integrators at `/guides` as pages, and with `.md` as Markdown, and lists them at `/llms.txt`.
 * Nothing is read before the first request.
 */
export function serveGuides(app: FastifyInstance, publicUrl: string): void {
  let read: Guides | undefined;
  const guides = (): Guides => (read ??= readGuides(publicUrl));
  const find = (name: string): Guide => {
    const { index, ordered, references } = guides();
    const guide = [index, ...ordered, ...references].find((each) => each.name === name);
    if (guide === undefined) throw new RequestError('route.not_found');
    return guide;
  };
  const pageOf = remember((guide: Guide) => renderGuide(guide, guides(), publicUrl));
  const markdownOf = remember((guide: Guide) =>
    renderedFile('text/markdown; charset=utf-8', `# ${guide.title}\n${guide.markdown}`),
  );
  const list = makeOnce(async () => renderedFile('text/plain; charset=utf-8', writeLlmsText(guides(), publicUrl)));
  const schema = { hide: true };
  app.get<{ Params: { page?: string } }>('/guides/:page?', { schema }, async (request, reply) => {
    const page = request.params.page || guides().index.name;
    const guide = find(page.replace(/\.md$/, ''));
    return page.endsWith('.md') ? sendFile(request, reply, markdownOf(guide)) : sendPage(reply, 200, pageOf(guide));
  });
  app.get('/llms.txt', { schema }, async (request, reply) => sendFile(request, reply, await list()));
}

/** What is made of a guide, once. */
function remember<Made>(make: (guide: Guide) => Made): (guide: Guide) => Made {
  const made = new Map<Guide, Made>();
  return (guide) => {
    const known = made.get(guide) ?? make(guide);
    made.set(guide, known);
    return known;
  };
}
