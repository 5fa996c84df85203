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
 * reads. An error before the first one rejects; a later one destroys the stream, so that the client sees a broken
 * response and not a short one.
 *
 * @param options `admitted`: the first text is made in the turn that the request already has
 */
export async function sendJson(
  exchange: Exchange,
  texts: JsonTexts<Text>,
  options: { admitted?: boolean } = {},
): Promise<FastifyReply> {
  const { request, reply } = exchange;
  const chunks = inTurns(exchange, texts, options.admitted ?? false);
  const first = await chunks.next();
  if (request.method === 'HEAD') {
    // Status and headers are known. Fastify would read the rest, which is cancelled when the response ends.
    await chunks.return(undefined);
    return reply.type(jsonType).send(Readable.from([]));
  }
  const stream = Readable.from(beginningWith(first.value!, chunks), { objectMode: false });
  stream.once('error', (error) => {
    if (!reply.raw.closed) request.log.warn({ err: error }, 'a response was aborted');
  });
  return reply.type(jsonType).send(stream);
}

/** The request's deadline is that of the first text; how long the others take depends on the client. */
async function* inTurns(
  { request, admission }: Exchange,
  texts: JsonTexts<Text>,
  admitted: boolean,
): AsyncGenerator<Text, undefined> {
  // The later ones are asked for in events of the connection, which do not know the request's context.
  const inContext = AsyncLocalStorage.snapshot();
  const { requestId, crmId } = currentContext()!;
  const nextInTurn = async (first: boolean): Promise<IteratorResult<Text, Text>> => {
    using _turn =
      first && admitted
        ? undefined
        : await admission.takeTurn(request, first ? weights.firstPart : weights.laterPart, { first });
    return await (first ? texts.next() : inContext(() => runWithContext({ requestId, crmId }, () => texts.next())));
  };
  try {
    let next = await nextInTurn(true);
    while (!next.done) {
      yield next.value;
      next = await nextInTurn(false);
    }
    yield next.value;
  } finally {
    await texts.return('');
  }
  return undefined;
}

async function* beginningWith<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield first;
  yield* rest;
}
