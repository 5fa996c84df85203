import type { ListAppointmentsRequest, ListAppointmentsResponse } from '@scheduling/contracts/calendar/v1';
import { currentContext, newRequestId, runWithContext } from '@scheduling/runtime';
import type { FastifyReply } from 'fastify';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Clients } from '../clients.ts';
import { appointment, presentAppointment } from './appointment-presentation.ts';

type Appointments = Clients['appointments'];

/** A list must start within this time, in milliseconds, or it is rejected. How long the rest takes depends on the client. */
const firstMessageMs = 2_000;

/** A single object, because Fastify compiles each schema once per route. */
const appointmentSchema: Record<string, unknown> = { ...appointment };

/**
 * All appointments as the text of a JSON array, forwarded as they arrive and no faster than the client reads. An error before the first
 * one rejects; a later one destroys the stream, so that the client sees a broken response and not a short list.
 */
export async function appointmentStream(appointments: Appointments, request: ListAppointmentsRequest, reply: FastifyReply): Promise<Readable> {
  const messages = openList(appointments, request, reply.raw);
  // The call is made by the first `next` and takes its deadline from there: none, because it lasts as long as the client reads.
  const first = await runWithContext({ requestId: currentContext()?.requestId ?? newRequestId() }, () => messages.next());
  return Readable.from(jsonArray(first, messages, reply.compileSerializationSchema(appointmentSchema)), { objectMode: false });
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

async function* jsonArray(
  first: IteratorResult<ListAppointmentsResponse>,
  messages: AsyncGenerator<ListAppointmentsResponse, undefined>,
  toJson: (appointment: ReturnType<typeof presentAppointment>) => string,
): AsyncGenerator<string> {
  let separator = '[';
  try {
    for (let next = first; !next.done; next = await messages.next()) {
      if (next.value.appointments.length === 0) continue;
      yield separator + next.value.appointments.map((appointment) => toJson(presentAppointment(appointment))).join(',');
      separator = ',';
    }
    yield separator === '[' ? '[]' : ']';
  } finally {
    await messages.return(undefined);
  }
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
