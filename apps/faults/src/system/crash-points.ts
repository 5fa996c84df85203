/**
 * Loaded into a service's process in front of its own code, by NODE_OPTIONS: `--import
 * file:///…/crash-points.ts?folder=…`. No service knows it.
 *
 * On SIGUSR2 the process reads its orders ({@link Orders}) from `<folder>/<pid>.json`: to kill itself where it next
 * gets to a certain point, or to be wrong about the time. The points are calls of the libraries that the services use,
 * told apart by what is sent.
 */
import { NatsConnectionImpl } from '@nats-io/nats-core/internal';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import http2, { type ServerHttp2Stream } from 'node:http2';
import { Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import type { Orders, Point } from './orders.ts';

let crash: Orders['crash'];

function load(): void {
  const folder = new URL(import.meta.url).searchParams.get('folder');
  // The process of a package manager or a server may inherit NODE_OPTIONS.
  if (folder === null || !/\/apps\/\w+\/src\/main\.ts$/.test(process.argv[1] ?? '')) return;
  process.on('SIGUSR2', () => {
    const orders = JSON.parse(readFileSync(join(folder, `${process.pid}.json`), 'utf8')) as Orders;
    crash = orders.crash;
    clockOffsetMs = orders.clockOffsetMs;
  });
  hookClock();
  hookPostgres();
  hookAnswers();
  hookNats();
  hookSmtp();
  hookRequests();
}

/** Kills the process if it was ordered to end here, and has been here often enough. */
function pass(point: Point): void {
  if (crash?.point !== point) return;
  crash.after -= 1;
  if (crash.after <= 0) process.kill(process.pid, 'SIGKILL');
}

let clockOffsetMs = 0;

/**
 * The clock of the machine, as the process reads it. What measures durations is not affected, as with a real clock that
 * is wrong.
 */
function hookClock(): void {
  const RealDate = Date;
  const now = (): number => RealDate.now() + clockOffsetMs;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
    apply: () => new RealDate(now()).toString(),
    get: (target, property) => (property === 'now' ? now : (Reflect.get(target, property) as unknown)),
  });
}

/** What a statement does, if it is one that is committed: by itself, or as the end of a transaction. */
type Statement = 'inbox-commit' | 'record' | 'mark' | 'mark-sent' | 'commit';

const inInbox = new WeakSet<pg.Client>();

function hookPostgres(): void {
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  pg.Client.prototype.query = function hooked(this: pg.Client, ...args: unknown[]): unknown {
    const statement = classify(this, textOf(args[0]));
    if (statement === undefined) return query.apply(this, args);
    pass(`before-${statement}`);
    const result = query.apply(this, args);
    if (result instanceof Promise) return result.then((value: unknown) => passAfter(statement, value));
    return result;
  } as typeof pg.Client.prototype.query;
}

function passAfter<T>(statement: Statement, value: T): T {
  pass(`after-${statement}`);
  return value;
}

function textOf(first: unknown): string {
  if (typeof first === 'string') return first;
  return (first as { text?: string } | undefined)?.text ?? '';
}

function classify(client: pg.Client, text: string): Statement | undefined {
  if (/^\s*INSERT INTO inbox/i.test(text)) inInbox.add(client);
  if (/^\s*(commit|rollback)/i.test(text)) {
    const withInbox = inInbox.delete(client);
    if (/^\s*rollback/i.test(text)) return undefined;
    return withInbox ? 'inbox-commit' : 'commit';
  }
  if (/\bsent_at\b/.test(text) && /^\s*(with|update)/i.test(text)) return 'mark';
  if (/record_sent_mail/.test(text)) return 'mark-sent';
  if (/record_events/.test(text)) return 'record';
  // A call of a SQL function that writes is a transaction of its own.
  return /^\s*SELECT (index, )?answer, CASE/i.test(text) ? 'commit' : undefined;
}

function hookAnswers(): void {
  const create = http2.createServer;
  http2.createServer = ((...args: Parameters<typeof create>) =>
    create(...args).on('stream', hookStream)) as typeof create;
  const end = http.ServerResponse.prototype.end as (...args: unknown[]) => unknown;
  http.ServerResponse.prototype.end = function hooked(this: http.ServerResponse, ...args: unknown[]): unknown {
    // Not what probes and scrapes ask for.
    const isOfClient = /^\/(crms|booking)\//.test(this.req.url ?? '');
    if (isOfClient) {
      pass('before-answer');
      this.once('finish', () => pass('after-answer'));
    }
    return end.apply(this, args);
  } as typeof http.ServerResponse.prototype.end;
}

function hookStream(stream: ServerHttp2Stream): void {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  stream.write = ((...args: unknown[]) => {
    pass('before-answer');
    const result = write(...args);
    setImmediate(() => pass('after-answer'));
    return result;
  }) as typeof stream.write;
}

function hookNats(): void {
  const publish = NatsConnectionImpl.prototype.publish;
  NatsConnectionImpl.prototype.publish = function hooked(
    this: NatsConnectionImpl,
    ...args: Parameters<typeof publish>
  ): void {
    const step = args[0].startsWith('$JS.ACK.') ? 'ack' : args[0].startsWith('scheduling.') ? 'publish' : undefined;
    if (step) pass(`before-${step}`);
    publish.apply(this, args);
    // Once the client has written it to its socket.
    if (step) setImmediate(() => pass(`after-${step}`));
  };
}

function hookSmtp(): void {
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.write = function hooked(this: Socket, ...args: unknown[]): boolean {
    const isData =
      typeof args[0] === 'string' || Buffer.isBuffer(args[0]) ? String(args[0].slice(0, 6)) === 'DATA\r\n' : false;
    if (!isData) return write.apply(this, args);
    pass('before-data');
    // The answer to DATA asks for the mail; the next one says that the server has it.
    this.once('data', () => this.once('data', () => pass('after-data')));
    return write.apply(this, args);
  };
}

function hookRequests(): void {
  const end = http.ClientRequest.prototype.end as (...args: unknown[]) => http.ClientRequest;
  http.ClientRequest.prototype.end = function hooked(this: http.ClientRequest, ...args: unknown[]): http.ClientRequest {
    if (this.hasHeader('webhook-id')) {
      pass('before-post');
      this.once('response', () => pass('after-post'));
    }
    return end.apply(this, args);
  } as typeof http.ClientRequest.prototype.end;
}

load();
