import { setTimeout as delay } from 'node:timers/promises';
import { describe } from './client.ts';
import type { Journal, Operation } from './journal.ts';
import { type Attempt, repeatUntilKnown } from './repeat-until-known.ts';

/** A page as a browser without script got it. */
export interface Page {
  /** Its address. */
  url: string;
  status: number;
  text: string;
  /** Where a redirect leads. */
  location?: string;
}

/** A form of a page, as its button submits it. */
export interface Form {
  action: string;
  fields: Record<string, string>;
}

/** The browsers of the persons to whom a CRM has given links: each has a network address of its own. */
export interface PageClient {
  /** One attempt to open a page. Undefined if there is no answer. Does not follow redirects. */
  open(url: string, person: string): Promise<Page | undefined>;
  /** Reloads a page until it is there, or until it is certain that it is not. Undefined if time ran out. */
  load(url: string, person: string): Promise<Page | undefined>;
  /**
   * Submits a form again and again until it is known what became of it. Each time the button is pressed as often as
   * given, at once. Calls back with every answer.
   */
  submit(
    operation: Operation,
    form: Form,
    visit: { person: string; presses: number; onAnswer: (page: Page) => void },
  ): Promise<void>;
}

export interface PageClientOptions {
  /** The first two numbers of the network addresses of the persons. */
  network: string;
  /** The mark of the other CRM: none of its texts may ever be on a page. */
  foreignMark: string;
  journal: Journal;
  /** When everybody gives up. */
  ended: AbortSignal;
}

const answerMs = 6_000;
/** A person tries again later than a program, and no page may be opened more often than 60 times a minute. */
const reloadMs = 500;
/** As pages of a 503 ask for. */
const unavailableMs = 2_000;

export function createPageClient(options: PageClientOptions): PageClient {
  const { journal, ended } = options;
  const send = createSend(options);
  return {
    open: (url, person) => send({ url, person }),
    load: async (url, person) => {
      while (!ended.aborted) {
        const page = await send({ url, person });
        if (page !== undefined && page.status < 429) return page;
        await delay(page === undefined ? reloadMs : unavailableMs);
      }
      return undefined;
    },
    submit: async (operation, form, { person, presses, onAnswer }) => {
      const press = async (): Promise<Attempt> => {
        const page = await send({ url: form.action, person, requestId: operation.token, fields: form.fields });
        if (page === undefined) return { outcome: undefined, answer: 'no answer', pauseMs: reloadMs };
        onAnswer(page);
        return { outcome: outcomeOf(page), answer: `${page.status}`, pauseMs: unavailableMs };
      };
      const attempt = async (): Promise<Attempt> => {
        const attempts = await Promise.all(Array.from({ length: presses }, press));
        const [lost, known] = [attempts.filter(isUnknown), attempts.filter((each) => !isUnknown(each))];
        const accepted = known.find(({ outcome }) => outcome === 'ok');
        if (accepted === undefined) return lost[0] ?? known[0]!;
        operation.unknowns += lost.length;
        return accepted;
      };
      await repeatUntilKnown(operation, attempt, { journal, ended });
    },
  };
}

interface PageRequest {
  url: string;
  person: string;
  /** As a proxy in front of page chooses it. The mail about what the request does has it in its header. */
  requestId?: string;
  /** Those of a form. */
  fields?: Record<string, string>;
}

function createSend({ network, foreignMark, journal }: PageClientOptions) {
  return async ({ url, person, requestId, fields }: PageRequest): Promise<Page | undefined> => {
    const method = fields === undefined ? 'GET' : 'POST';
    const described = `${method} ${patternOf(url)}`;
    journal.requests.sent += 1;
    try {
      const response = await fetch(url, {
        method,
        redirect: 'manual',
        headers: {
          'x-forwarded-for': addressIn(network, person),
          ...(requestId !== undefined && { 'x-request-id': requestId }),
        },
        ...(fields !== undefined && { body: new URLSearchParams(fields) }),
        signal: AbortSignal.timeout(answerMs),
      });
      const page: Page = { url, status: response.status, text: await response.text() };
      const location = response.headers.get('location');
      if (location !== null) page.location = new URL(location, url).href;
      if (page.text.includes(foreignMark)) journal.surprises.push(`I9 ${described} returned data of another CRM`);
      if (![200, 303, 404, 409, 429, 503].includes(page.status))
        journal.surprises.push(`${described} was answered with ${page.status} ${headingOf(page)}`);
      if (page.status >= 429) journal.requests.unserved.push(`${described} was answered with ${page.status}`);
      return page;
    } catch (error) {
      journal.requests.unserved.push(`${described} was not answered: ${describe(error)}`);
      return undefined;
    }
  };
}

/**
 * Undefined if the attempt may have had an effect, or the page asks to repeat it. What somebody wants to cancel may be
 * cancelled already, also by an attempt that was not answered.
 */
function outcomeOf({ url, status }: Page): Attempt['outcome'] {
  if (status === 303 || (status === 200 && new URL(url).pathname.endsWith('/cancel'))) return 'ok';
  return status < 429 ? 'failed' : undefined;
}

function isUnknown({ outcome }: Attempt): boolean {
  return outcome === undefined;
}

/** Without its token. */
function patternOf(url: string): string {
  return new URL(url).pathname.replace(/^\/booking\/[\w-]+/, '/booking/:token');
}

function addressIn(network: string, person: string): string {
  const number = Number(/\d+/.exec(person)![0]) % 65_536;
  return `${network}.${number >> 8}.${number & 255}`;
}

export function headingOf({ text }: Page): string {
  return unescape(/<h1>(.*?)<\/h1>/s.exec(text)?.[1] ?? '');
}

/** The addresses to which a page has links. */
export function linksOf({ url, text }: Page): string[] {
  return [...text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, href]) => new URL(unescape(href!), url).href);
}

/** The form of a page with its hidden fields; undefined if it has none. */
export function formOf({ url, text }: Page): Form | undefined {
  const action = /<form method="post" action="([^"]+)"/.exec(text)?.[1];
  if (action === undefined) return undefined;
  const hidden = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
  const fields = Object.fromEntries([...hidden].map(([, name, value]) => [name!, unescape(value!)]));
  return { action: new URL(unescape(action), url).href, fields };
}

function unescape(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
