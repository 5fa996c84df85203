import type { LookupAddress, LookupOptions } from 'node:dns';
import { once } from 'node:events';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { type BlockList, connect as connectTcp, isIP, type Socket } from 'node:net';
import { Duplex, Readable } from 'node:stream';
import type { ReadableWritablePair } from 'node:stream/web';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { callbackify } from 'node:util';
import { blockedNetworks } from './blocked-networks.ts';
import { checkUrl, hostOf } from './check-url.ts';
import { createDnsLookup, type Lookup, systemLookup } from './lookup.ts';
import { parseRetryAfter } from './retry-after.ts';

export interface Poster {
  /**
   * Sends one POST with a JSON body to a stranger's endpoint. The URL must pass `checkUrl`, and no address in
   * `blockedNetworks` is connected. Each request has a new connection and verifies the certificate; redirects are not
   * followed, and proxies are not used.
   *
   * Resolves within 10 s, or soon after the signal aborts, when the connection is closed, and never rejects. The body
   * of the answer is discarded.
   */
  post(url: string, headers: Record<string, string>, body: string, signal: AbortSignal): Promise<PostResult>;
}

export type PostResult = Outcome & { durationMs: number };

/** Once the server has sent a status, this is the outcome, whatever becomes of the body. */
type Outcome = { status: number; retryAfterSeconds?: number } | { error: PostError };

export type PostError =
  /** The URL is not permitted, or the name has no other address than blocked ones that could be connected. */
  | 'blocked'
  /** The name has no address, or the name servers did not answer. */
  | 'dns'
  | 'connect'
  /** The certificate is not valid for the host, or there is no common version. */
  | 'tls'
  /** 10 s have passed, or the signal has aborted. */
  | 'timeout'
  /**
   * The connection was closed before an answer, or the answer is not HTTP, has more than 8 KiB of headers, or comes
   * after too much else.
   */
  | 'protocol';

/** How far a request got, named after the error if it gets no further. */
interface Progress {
  step: 'dns' | 'connect' | 'tls' | 'protocol';
}

export interface PosterOptions {
  /** For development: permits whatever `checkUrl` does with it, and every address. */
  allowPrivate: boolean;
  /** For tests, in place of the DNS. */
  lookup?: Lookup;
  /** For tests: the trusted authorities (PEM). */
  ca?: string;
  /** For tests: the addresses that are never connected. */
  blocked?: BlockList;
}

interface Connector {
  lookup: Lookup;
  blocked: BlockList | undefined;
  secureContext: SecureContext;
}

/** From the DNS lookup to the end of the body. */
export const postLimitMs = 10_000;
const maxHeaderBytes = 8 * 1_024;
const maxBodyBytes = 1_024;
/** Of all that the server sends, the certificates included, which are usually less than 8 KiB. */
const maxReceivedBytes = 64 * 1_024;
const maxInterimResponses = 10;

export function createPoster(options: PosterOptions): Poster {
  const { allowPrivate } = options;
  const connector = {
    lookup: options.lookup ?? (allowPrivate ? systemLookup : createDnsLookup()),
    blocked: options.blocked ?? (allowPrivate ? undefined : blockedNetworks),
    // Takes 1 ms to create.
    secureContext: createSecureContext({ ca: options.ca }),
  };
  const attempt = async (
    url: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    if (checkUrl(url, { allowPrivate }) !== undefined) return { error: 'blocked' };
    if (signal.aborted) return { error: 'timeout' };
    return send(new URL(url), headers, body, AbortSignal.any([signal, AbortSignal.timeout(postLimitMs)]), connector);
  };
  return {
    post: async (url, headers, body, signal) => {
      const startedAt = performance.now();
      const outcome = await attempt(url, headers, body, signal);
      return { ...outcome, durationMs: Math.round(performance.now() - startedAt) };
    },
  };
}

async function send(
  url: URL,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
  connector: Connector,
): Promise<Outcome> {
  const progress: Progress = { step: isIP(hostOf(url)) === 0 ? 'dns' : 'connect' };
  let socket: Socket | undefined;
  try {
    socket = await connect(url, signal, connector, progress);
    const limited = limitReceived(socket);
    if (url.protocol === 'http:') {
      progress.step = 'protocol';
      return await exchange(limited, url, headers, body, signal);
    }
    progress.step = 'tls';
    const secured = await secure(limited, hostOf(url), signal, connector);
    progress.step = 'protocol';
    return await exchange(secured, url, headers, body, signal);
  } catch (error) {
    return { error: signal.aborted ? 'timeout' : classify(error as NodeJS.ErrnoException, progress) };
  } finally {
    socket?.destroy();
  }
}

/**
 * `net.connect` calls `lookup` once, and compares each address that it is about to connect with the block list, literal
 * addresses, too. It is used here because `tls.connect` and `https.request` ignore the option `blockList` without a
 * word.
 */
async function connect(
  url: URL,
  signal: AbortSignal,
  { lookup, blocked }: Connector,
  progress: Progress,
): Promise<Socket> {
  const findAddresses = callbackify(async (host: string, _options: LookupOptions): Promise<LookupAddress[]> => {
    const addresses = await lookup(host, signal);
    // Node would throw where nobody can catch it.
    if (addresses.length === 0) throw new Error('The name has no address.');
    progress.step = 'connect';
    // An address is compared only with the rules of the family that is stated here.
    return addresses.map((address) => ({ address, family: isIP(address) }));
  });
  const port = url.port || (url.protocol === 'https:' ? 443 : 80);
  const socket = connectTcp({
    host: hostOf(url),
    port: Number(port),
    blockList: blocked,
    autoSelectFamily: true,
    lookup: findAddresses,
    signal,
  });
  await connected(socket, 'connect');
  return socket;
}

/**
 * The connection, which seems to end when the server has sent too much. Neither TLS nor HTTP limits what comes before,
 * within and after an answer and is no part of its head and body, such as interim responses, extensions of chunks, or
 * key updates: the process would be busy with it for as long as the server sends it.
 */
function limitReceived(socket: Socket): Duplex {
  const pair: unknown = {
    readable: Readable.from(readFirst(socket, maxReceivedBytes), { objectMode: false }),
    writable: socket,
  };
  // The types mention only web streams.
  const limited = Duplex.from(pair as ReadableWritablePair);
  // As in `connected`.
  return limited.on('error', () => {});
}

async function* readFirst(socket: Socket, maxBytes: number): AsyncGenerator<Buffer> {
  let room = maxBytes;
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    yield chunk.subarray(0, room);
    room -= chunk.length;
    if (room <= 0) return;
  }
}

/**
 * The socket must be connected: Node 26.10 ends with SIGSEGV if a socket that already belongs to a TLS socket tries a
 * second address.
 */
async function secure(
  socket: Duplex,
  host: string,
  signal: AbortSignal,
  { secureContext }: Connector,
): Promise<Socket> {
  // A literal address is no server name; the certificate is compared with `host` then.
  const servername = isIP(host) === 0 ? host.replace(/\.$/, '') : '';
  const options = { socket, host, servername, secureContext, signal, ALPNProtocols: ['http/1.1'] };
  // `rejectUnauthorized` is the default, which NODE_TLS_REJECT_UNAUTHORIZED could change.
  const secured = connectTls({ ...options, rejectUnauthorized: true });
  await connected(secured, 'secureConnect');
  return secured;
}

async function connected(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  // An error that occurs when nobody else listens, after the event or later, must not end the process.
  socket.on('error', () => {});
  await once(socket, event);
}

function exchange(
  socket: Duplex,
  url: URL,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: 'POST',
    headers: { ...headers, host: url.host, 'content-type': 'application/json' },
    signal,
    maxHeaderSize: maxHeaderBytes,
    // There is no agent, and thus no pool of connections and no proxy from the environment.
    createConnection: () => socket,
  });
  let outcome: Outcome | undefined;
  let interimResponses = 0;
  request.on('information', () => {
    interimResponses += 1;
    if (interimResponses > maxInterimResponses) request.destroy();
  });
  request.on('response', (response) => {
    // What has arrived together is parsed to its end.
    if (interimResponses <= maxInterimResponses) outcome = outcomeOf(response);
    discardBody(response, () => request.destroy());
  });
  request.on('error', (error) => {
    if (outcome === undefined) reject(error);
  });
  request.on('close', () => {
    if (outcome === undefined) reject(new Error('The connection was closed without an answer.'));
    else resolve(outcome);
  });
  request.end(body);
  return promise;
}

function outcomeOf({ statusCode, headers }: IncomingMessage): Outcome {
  const retryAfterSeconds = parseRetryAfter(headers['retry-after'], new Date());
  return { status: statusCode!, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

/** Reads a short body to its end, so that the server can send it without an error. */
function discardBody(response: IncomingMessage, close: () => void): void {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) close();
  });
}

function classify(error: NodeJS.ErrnoException, { step }: Progress): PostError {
  // There are several if several addresses were tried.
  const errors: NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error];
  if (errors.some(({ code }) => code === 'ERR_IP_BLOCKED')) return 'blocked';
  // Since TLS 1.3, a server can reject the client after the handshake.
  return error.code?.startsWith('ERR_SSL_') ? 'tls' : step;
}
