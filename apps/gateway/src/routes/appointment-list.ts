import type { ListAppointmentsRequest, ListAppointmentsResponse } from '@scheduling/contracts/calendar/v1';
import type { FastifyReply } from 'fastify';
import type { Clients } from '../clients.ts';
import { appointment, presentAppointment } from './appointment-presentation.ts';
import type { StreamedList } from './streamed-list.ts';

/** A single object, because Fastify compiles each schema once per route. */
const appointmentSchema: Record<string, unknown> = { ...appointment };

/** Appointments as calendar writes them. A calendar of the previous version answers without `json`. */
export function appointmentList(
  appointments: Clients['appointments'],
  list: ListAppointmentsRequest,
  reply: FastifyReply,
): StreamedList<ListAppointmentsResponse> {
  const toJson = reply.compileSerializationSchema(appointmentSchema);
  return {
    open: (signal) => appointments.listAppointments({ ...list, asJson: true }, signal),
    toJson: (message) => message.json ?? Buffer.from(message.appointments.map((each) => toJson(presentAppointment(each))).join(',')),
  };
}
