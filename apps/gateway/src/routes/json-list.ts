import { closedSignal } from '@scheduling/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { weightOfMany } from '../admission.ts';
import { linkToNext } from '../paging.ts';
import { type Exchange, type JsonTexts, jsonType, sendJson } from './json-stream.ts';

/** A part of a list. */
export interface ListMessage {
  /** Elements, separated by commas; empty if there are none. */
  json: Buffer;
  /** Set in the last part of a page that is followed by another. */
  nextCursor?: string | undefined;
}

/** Opens a list, which the signal cancels. */
export type OpenList = (signal: AbortSignal) => AsyncIterable<ListMessage>;

/** A list of objects, each of which a schema turns into JSON. The schema is a constant: Fastify compiles it once per route. */
export function openObjects<Message extends Pick<ListMessage, 'nextCursor'>>(
  reply: FastifyReply,
  schema: Record<string, unknown>,
  call: (signal: AbortSignal) => AsyncIterable<Message>,
  objectsOf: (message: Message) => object[],
): OpenList {
  const toJson = reply.compileSerializationSchema(schema);
  return async function* messages(signal): AsyncGenerator<ListMessage> {
    for await (const message of call(signal)) {
      const texts = objectsOf(message).map((each) => toJson({ ...each }));
      yield { json: Buffer.from(texts.join(',')), nextCursor: message.nextCursor };
    }
  };
}

/**
 * The first message of a list must arrive within this time, in milliseconds, or the list is rejected. How long the rest
 * takes depends on the client.
 */
const firstMessageMs = 2_000;

/** A complete list takes a turn for each part of it; a page is weighed by its length. */
export const listConfig = {
  isStreamed: isComplete,
  weigh: ({ query }: FastifyRequest): number => weightOfMany((query as { limit?: number }).limit ?? 0),
};

/** Whether all elements are asked for. */
function isComplete({ query }: Pick<FastifyRequest, 'query'>): boolean {
  return (query as { limit?: number }).limit === undefined;
}

/** Sends a list as an array: all of it, forwarded as it arrives, or one page, if the request has a limit. */
export async function sendList(exchange: Exchange, publicUrl: string, open: OpenList): Promise<FastifyReply> {
  const { request } = exchange;
  const messages = inTime(open, closedSignal(request));
  if (isComplete(request)) return sendJson(exchange, arrayTexts(messages));
  return sendPage(exchange, publicUrl, messages);
}

/** Small enough to be buffered: the address of the next page goes into a header, which is sent first. */
async function sendPage(
  { request, reply }: Exchange,
  publicUrl: string,
  messages: AsyncIterable<ListMessage>,
): Promise<FastifyReply> {
  const parts = await Array.fromAsync(messages);
  const nextCursor = parts.at(-1)?.nextCursor;
  if (nextCursor !== undefined) void reply.header('link', linkToNext(publicUrl, request.url, 'cursor', nextCursor));
  const texts = parts.map(({ json }) => json).filter(({ length }) => length > 0);
  return reply.type(jsonType).send(`[${texts.join(',')}]`);
}

/** A first message shorter than this waits for what follows it, in case that is the end: most lists are sent as a whole. */
const shortBytes = 65_536;
const [open, separator, close] = ['[', ',', ']'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

export async function* arrayTexts(messages: AsyncIterable<ListMessage>): JsonTexts<Buffer> {
  let waiting = [open];
  let isFirst = true;
  let isEmpty = true;
  for await (const { json } of messages) {
    const mayBeAll = isFirst && json.length < shortBytes;
    isFirst = false;
    if (json.length === 0) continue;
    waiting.push(...(isEmpty ? [] : [separator]), json);
    isEmpty = false;
    if (mayBeAll) continue;
    yield Buffer.concat(waiting);
    waiting = [];
  }
  return Buffer.concat([...waiting, close]);
}

/** Cancels the call when the client disconnects, or when the first message does not arrive in time. */
async function* inTime(open: OpenList, closed: AbortSignal): AsyncGenerator<ListMessage, undefined> {
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
