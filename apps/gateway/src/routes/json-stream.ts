import { currentContext, runWithContext } from '@scheduling/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import type { Admission } from '../admission.ts';

/** How much work a part is, compared with a booking. The first is smaller, and most lists have no other. */
const weights = { firstPart: 16, laterPart: 40 };

/** The client's request and what serves it. */
export interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
  admission: Admission;
}

type Text = string | Buffer;

/** Texts that together are a JSON document; the last one is the result. */
export type JsonTexts<Part extends Text = string> = AsyncGenerator<Part, Part, undefined>;

export const jsonType = 'application/json; charset=utf-8';

/**
 * Sends texts as they are made, each in a turn that ends before the client has read it, and no faster than the client
 * reads. If there is only one, it is sent as any other response is. An error before the first one rejects; a later one
 * destroys the stream, so that the client sees a broken response and not a short one.
 *
 * @param options `admitted`: the first text is made in the turn that the request already has
 */
export async function sendJson(
  exchange: Exchange,
  texts: JsonTexts<Text>,
  options: { admitted?: boolean } = {},
): Promise<FastifyReply> {
  const { request, reply, admission } = exchange;
  const first = await firstOf(texts, () =>
    options.admitted ? undefined : admission.takeTurn(request, weights.firstPart, { first: true }),
  );
  void reply.type(jsonType);
  if (first.done) return reply.send(first.value);
  if (request.method === 'HEAD') {
    // Status and headers are known. Fastify would read the rest, which is cancelled when the response ends.
    await texts.return('');
    return reply.send(Readable.from([]));
  }
  const stream = Readable.from(beginningWith(first.value, inTurns(exchange, texts)), { objectMode: false });
  stream.once('error', (error) => {
    if (!reply.raw.closed) request.log.warn({ err: error }, 'a response was aborted');
  });
  // Also if it is destroyed before the second text.
  stream.once('close', () => void texts.return('').catch(() => undefined));
  return reply.send(stream);
}

/** The request's deadline is that of the first text; how long the others take depends on the client. */
async function firstOf(
  texts: JsonTexts<Text>,
  takeTurn: () => Promise<Disposable> | undefined,
): Promise<IteratorResult<Text, Text>> {
  try {
    using _turn = await takeTurn();
    return await texts.next();
  } catch (error) {
    await texts.return('');
    throw error;
  }
}

/** The texts after the first, each made in a turn. */
function inTurns({ request, admission }: Exchange, texts: JsonTexts<Text>): AsyncIterable<Text> {
  // They are asked for in events of the connection, which do not know the request's context.
  const inContext = AsyncLocalStorage.snapshot();
  const { requestId, crmId } = currentContext()!;
  const nextInTurn = async (): Promise<IteratorResult<Text, Text>> => {
    using _turn = await admission.takeTurn(request, weights.laterPart, { first: false });
    return await inContext(() => runWithContext({ requestId, crmId }, () => texts.next()));
  };
  async function* laterTexts(): AsyncGenerator<Text, undefined> {
    let next = await nextInTurn();
    while (!next.done) {
      yield next.value;
      next = await nextInTurn();
    }
    yield next.value;
    return undefined;
  }
  return laterTexts();
}

async function* beginningWith<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield first;
  yield* rest;
}
