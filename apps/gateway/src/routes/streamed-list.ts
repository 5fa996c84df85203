import type { FastifyReply, FastifyRequest } from 'fastify';
import { weightOfMany } from '../admission.ts';
import { closedSignal } from '../request-hooks.ts';
import { type Exchange, type JsonTexts, jsonType, sendJson } from './json-stream.ts';

/** A list that a service answers with a stream of messages. */
export interface StreamedList<Message> {
  open: (signal: AbortSignal) => AsyncIterable<Message>;
  /** The elements of a message as JSON, separated by commas. */
  toJson: (message: Message) => Buffer;
}

/** A list must start within this time, in milliseconds, or it is rejected. How long the rest takes depends on the client. */
const firstMessageMs = 2_000;

/** A complete list takes a turn for each part of it; a page is weighed by its length. */
export const listConfig = {
  isStreamed,
  weigh: ({ query }: FastifyRequest): number => weightOfMany((query as { limit?: number }).limit ?? 0),
};

/** A complete list. */
function isStreamed({ query }: Pick<FastifyRequest, 'query'>): boolean {
  return (query as { limit?: number }).limit === undefined;
}

/** All elements, forwarded as they arrive; with `limit`, one page, and the address of the next one in its header. */
export function sendList<Message extends { nextCursor?: string | undefined }>(
  list: StreamedList<Message>,
  exchange: Exchange,
  linkToNext: (cursor: string) => string,
): Promise<FastifyReply> {
  return isStreamed(exchange.request) ? sendJson(exchange, textsOf(list, exchange.request)) : sendPage(list, exchange, linkToNext);
}

/** A page is small enough to be buffered: the header is sent first. */
async function sendPage<Message extends { nextCursor?: string | undefined }>(
  list: StreamedList<Message>,
  { request, reply }: Exchange,
  linkToNext: (cursor: string) => string,
): Promise<FastifyReply> {
  const messages = await Array.fromAsync(messagesOf(list, closedSignal(request)));
  const nextCursor = messages.at(-1)?.nextCursor;
  if (nextCursor !== undefined) void reply.header('link', linkToNext(nextCursor));
  const texts = messages.map(list.toJson).filter(({ length }) => length > 0);
  return reply.type(jsonType).send(`[${texts.join(',')}]`);
}

async function* textsOf<Message>(list: StreamedList<Message>, request: FastifyRequest): JsonTexts<string | Buffer> {
  let separator = '[';
  for await (const message of messagesOf(list, closedSignal(request))) {
    const json = list.toJson(message);
    if (json.length === 0) continue;
    yield Buffer.concat([Buffer.from(separator), json]);
    separator = ',';
  }
  return separator === '[' ? '[]' : ']';
}

/** Cancels the call to the service when the client disconnects, or when the first message does not arrive in time. */
async function* messagesOf<Message>({ open }: StreamedList<Message>, closed: AbortSignal): AsyncGenerator<Message, undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), firstMessageMs);
  try {
    for await (const message of open(AbortSignal.any([closed, late.signal]))) {
      clearTimeout(timer);
      yield message;
    }
  } finally {
    clearTimeout(timer);
  }
  return undefined;
}
