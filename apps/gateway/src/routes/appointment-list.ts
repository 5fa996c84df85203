import type { ListAppointmentsRequest, ListAppointmentsResponse } from '@scheduling/contracts/calendar/v1';
import { currentContext, newRequestId, runWithContext } from '@scheduling/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { appointment, presentAppointment } from './appointment-presentation.ts';

type Appointments = Clients['appointments'];

/** A list must start within this time, in milliseconds, or it is rejected. How long the rest takes depends on the client. */
const firstMessageMs = 2_000;

/** What a list that is being sent holds: messages that have arrived, and text that the client has not read. */
const streamBytes = 2 * 1_048_576;
/** How much work one message is, compared with a booking. */
const partWeight = 5;

/** A single object, because Fastify compiles each schema once per route. */
const appointmentSchema: Record<string, unknown> = { ...appointment };

/**
 * All appointments as the text of a JSON array, forwarded as they arrive and no faster than the client reads. An error before the first
 * one rejects; a later one destroys the stream, so that the client sees a broken response and not a short list.
 */
export async function appointmentStream(appointments: Appointments, list: ListAppointmentsRequest, exchange: Exchange): Promise<Readable> {
  const { request, reply, admission } = exchange;
  const held = admission.holdBytes(request, streamBytes);
  reply.raw.once('close', () => held[Symbol.dispose]());
  const parts = jsonArray(openList(appointments, list, reply.raw), reply.compileSerializationSchema(appointmentSchema), exchange);
  // The call is made by the first `next` and takes its deadline from there: none, because it lasts as long as the client reads.
  const first = await runWithContext({ requestId: currentContext()?.requestId ?? newRequestId() }, () => parts.next());
  return Readable.from(beginningWith(first.value!, parts), { objectMode: false });
}

/** One page, small enough to be buffered: the address of the next page goes into a header, which is sent first. */
export async function appointmentPage(appointments: Appointments, request: ListAppointmentsRequest, response: ServerResponse) {
  const page: ReturnType<typeof presentAppointment>[] = [];
  let nextCursor: string | undefined;
  const messages = openList(appointments, request, response);
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    page.push(...next.value.appointments.map(presentAppointment));
    nextCursor = next.value.nextCursor;
  }
  return { page, nextCursor };
}

/** The client's request and what serves it. */
export interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
  admission: Admission;
}

/** Converts one message after the other, each in a turn that ends before the client has read it. */
async function* jsonArray(
  messages: AsyncGenerator<ListAppointmentsResponse, undefined>,
  toJson: (appointment: ReturnType<typeof presentAppointment>) => string,
  { request, admission }: Exchange,
): AsyncGenerator<string, undefined> {
  const nextPart = async (first: boolean): Promise<string | undefined> => {
    using _turn = await admission.takeTurn(request, partWeight, { first });
    const next = await messages.next();
    return next.value?.appointments.map((appointment) => toJson(presentAppointment(appointment))).join(',');
  };
  let separator = '[';
  try {
    for (let part = await nextPart(true); part !== undefined; part = await nextPart(false)) {
      if (part === '') continue;
      yield separator + part;
      separator = ',';
    }
    yield separator === '[' ? '[]' : ']';
  } finally {
    await messages.return(undefined);
  }
  return undefined;
}

async function* beginningWith<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield first;
  yield* rest;
}

/** Cancels the call to the calendar when the client disconnects, or when the first message does not arrive in time. */
async function* openList(
  appointments: Appointments,
  request: ListAppointmentsRequest,
  response: ServerResponse,
): AsyncGenerator<ListAppointmentsResponse, undefined> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  response.once('close', abort);
  const timer = setTimeout(abort, firstMessageMs);
  try {
    for await (const message of appointments.listAppointments(request, controller.signal)) {
      clearTimeout(timer);
      yield message;
    }
  } finally {
    clearTimeout(timer);
    response.off('close', abort);
  }
  return undefined;
}
