import type { ListAppointmentsRequest, ListAppointmentsResponse } from '@scheduling/contracts/calendar/v1';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { closedSignal } from '../request-hooks.ts';
import { appointment, presentAppointment } from './appointment-presentation.ts';
import { type Exchange, type JsonTexts, sendJson } from './json-stream.ts';

type Appointments = Clients['appointments'];

/** A list must start within this time, in milliseconds, or it is rejected. How long the rest takes depends on the client. */
const firstMessageMs = 2_000;

/** A single object, because Fastify compiles each schema once per route. */
const appointmentSchema: Record<string, unknown> = { ...appointment };

/** All appointments, forwarded as they arrive. */
export function sendAppointments(appointments: Appointments, list: ListAppointmentsRequest, exchange: Exchange): Promise<FastifyReply> {
  const { request, reply } = exchange;
  const texts = appointmentTexts(openList(appointments, list, closedSignal(request)), reply.compileSerializationSchema(appointmentSchema));
  return sendJson(exchange, texts);
}

/** One page, small enough to be buffered: the address of the next page goes into a header, which is sent first. */
export async function appointmentPage(appointments: Appointments, list: ListAppointmentsRequest, request: FastifyRequest) {
  const page: ReturnType<typeof presentAppointment>[] = [];
  let nextCursor: string | undefined;
  const messages = openList(appointments, list, closedSignal(request));
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    page.push(...next.value.appointments.map(presentAppointment));
    nextCursor = next.value.nextCursor;
  }
  return { page, nextCursor };
}

async function* appointmentTexts(
  messages: AsyncIterable<ListAppointmentsResponse>,
  toJson: (appointment: ReturnType<typeof presentAppointment>) => string,
): JsonTexts {
  let separator = '[';
  for await (const { appointments } of messages) {
    if (appointments.length === 0) continue;
    yield separator + appointments.map((appointment) => toJson(presentAppointment(appointment))).join(',');
    separator = ',';
  }
  return separator === '[' ? '[]' : ']';
}

/** Cancels the call to the calendar when the client disconnects, or when the first message does not arrive in time. */
async function* openList(
  appointments: Appointments,
  list: ListAppointmentsRequest,
  closed: AbortSignal,
): AsyncGenerator<ListAppointmentsResponse, undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), firstMessageMs);
  try {
    for await (const message of appointments.listAppointments(list, AbortSignal.any([closed, late.signal]))) {
      clearTimeout(timer);
      yield message;
    }
  } finally {
    clearTimeout(timer);
  }
  return undefined;
}
