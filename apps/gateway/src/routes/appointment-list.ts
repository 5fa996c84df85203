import type { ListAppointmentsRequest, ListAppointmentsResponse } from '@scheduling/contracts/calendar/v1';
import type { FastifyReply } from 'fastify';
import type { Clients } from '../clients.ts';
import { closedSignal } from '../request-hooks.ts';
import { appointment, presentAppointment } from './appointment-presentation.ts';
import { type Exchange, type JsonTexts, jsonType, sendJson } from './json-stream.ts';

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
export async function sendAppointmentPage(
  appointments: Appointments,
  list: ListAppointmentsRequest,
  { request, reply }: Exchange,
  addressOfNext: (cursor: string) => string,
): Promise<FastifyReply> {
  const messages = await Array.fromAsync(openList(appointments, list, closedSignal(request)));
  const nextCursor = messages.at(-1)?.nextCursor;
  if (nextCursor !== undefined) void reply.header('link', addressOfNext(nextCursor));
  const toJson = reply.compileSerializationSchema(appointmentSchema);
  const texts = messages.map((message) => jsonOf(message, toJson)).filter(({ length }) => length > 0);
  return reply.type(jsonType).send(`[${texts.join(',')}]`);
}

async function* appointmentTexts(messages: AsyncIterable<ListAppointmentsResponse>, toJson: ToJson): JsonTexts<string | Buffer> {
  let separator = '[';
  for await (const message of messages) {
    const json = jsonOf(message, toJson);
    if (json.length === 0) continue;
    yield Buffer.concat([Buffer.from(separator), json]);
    separator = ',';
  }
  return separator === '[' ? '[]' : ']';
}

type ToJson = (appointment: ReturnType<typeof presentAppointment>) => string;

/** The appointments of a message, separated by commas. A calendar of the previous version answers without `json`. */
function jsonOf({ json, appointments }: ListAppointmentsResponse, toJson: ToJson): Buffer {
  return json ?? Buffer.from(appointments.map((each) => toJson(presentAppointment(each))).join(','));
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
    for await (const message of appointments.listAppointments({ ...list, asJson: true }, AbortSignal.any([closed, late.signal]))) {
      clearTimeout(timer);
      yield message;
    }
  } finally {
    clearTimeout(timer);
  }
  return undefined;
}
