import type { paths } from './api.ts';
import type { Arguments, Client, Init, PathOf } from './create-client.ts';

type ListAt<Path extends PathOf<'get'>> = paths[Path]['get'] extends {
  parameters: { query?: infer Query };
  responses: { 200: { content: { 'application/json': (infer Element)[] } } };
}
  ? HasLimit<NonNullable<Query>> extends true
    ? Element
    : never
  : never;

type HasLimit<Query> = [Query] extends [never] ? false : 'limit' extends keyof Query ? true : false;

/** The paths of the lists that have pages. */
export type ListPath = { [Path in PathOf<'get'>]: [ListAt<Path>] extends [never] ? never : Path }[PathOf<'get'>];

interface ListInit {
  params?: { query?: Record<string, unknown> };
}

type GetPage = (
  path: string,
  init: ListInit & { querySerializer?: () => string },
) => Promise<{ data: unknown[]; response: Response }>;

const defaultLimit = 100;

/**
 * Every element of a list, fetched page by page as they are needed; `limit` is the size of a page, 100 by default. On
 * `/events` it ends when it has caught up; `after` is the id of the last event that you have processed. Rejects like
 * `GET`.
 */
export async function* paginate<Path extends ListPath, Given extends Init<'get', Path>>(
  client: Client,
  path: Path,
  ...init: Arguments<Given>
): AsyncGenerator<ListAt<Path>, void, undefined> {
  const get = client.GET as GetPage;
  const { params, ...options }: ListInit = init[0] ?? {};
  let page = await get(path, { ...options, params: { ...params, query: { limit: defaultLimit, ...params?.query } } });
  for (let asked: string | undefined; ;) {
    yield* page.data as ListAt<Path>[];
    const next = nextQuery(page.response);
    // The end of the feed is its own next page.
    if (next === undefined || next === asked) return;
    page = await get(path, { ...options, params, querySerializer: () => next });
    asked = next;
  }
}

/** The query of the next page. The rest of its address is that of this one. */
function nextQuery(response: Response): string | undefined {
  return /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(response.headers.get('Link') ?? '')?.[1];
}
