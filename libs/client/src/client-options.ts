export interface ClientOptions {
  /** The address of the service, for example `https://scheduling.example.com`. */
  url: string;
  crmId: string;
  /** An API key of the CRM. */
  key: string;
  /** How long a request is repeated, in milliseconds from its first attempt; 15 s by default. 0: never. */
  retryForMs?: number;
  /** How long one attempt waits for the complete response, in milliseconds; 10 s by default. */
  attemptMs?: number;
  /** Sends one attempt; the global `fetch` by default. */
  fetch?: (request: Request) => Promise<Response>;
}

/** As the service creates them. */
const crmIdSyntax = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** A header can have nothing else. */
const keySyntax = /^[!-~]+$/;
/** Timers cannot wait for longer. */
const longestAttemptMs = 2_147_483_647;

/** Throws a TypeError that names the first wrong option, and what is expected. It never shows the key. */
export function checkOptions({ url, crmId, key, retryForMs, attemptMs, fetch }: Required<ClientOptions>): void {
  if (!isAddress(url)) {
    const expected = 'the address of the service, like https://scheduling.example.com, without user name, ? and #';
    refuse('url', expected, shown(url).replace(/\/\/.*@/, '//…@'));
  }
  if (typeof crmId !== 'string' || !crmIdSyntax.test(crmId))
    refuse('crmId', 'the ID of the CRM: lower-case letters, digits and hyphens, 63 at most', shown(crmId));
  if (typeof key !== 'string' || !keySyntax.test(key))
    refuse('key', 'an API key of the CRM, without spaces', typeof key === 'string' ? 'another text' : typeof key);
  if (typeof retryForMs !== 'number' || !(retryForMs >= 0))
    refuse('retryForMs', 'a number of milliseconds, 0 or more', shown(retryForMs));
  if (typeof attemptMs !== 'number' || !(attemptMs > 0 && attemptMs <= longestAttemptMs))
    refuse('attemptMs', `a number of milliseconds, more than 0 and at most ${longestAttemptMs}`, shown(attemptMs));
  if (typeof fetch !== 'function') refuse('fetch', 'a function, as there is no global one', shown(fetch));
}

/** With a user name or a password in it, `fetch` would refuse each request. */
function isAddress(value: unknown): boolean {
  if (typeof value !== 'string' || /[?#\s]/.test(value) || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return ['http:', 'https:'].includes(protocol) && username + password === '';
}

function refuse(setting: keyof ClientOptions, expected: string, given: string): never {
  throw new TypeError(`createClient: ${setting} must be ${expected}; it is ${given}`);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
