import type { ListAppointmentsRequest, ListAppointmentsResponse } from '@scheduling/contracts/calendar/v1';
import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import type { Clients } from '../clients.ts';
import { appointment, presentAppointment } from './appointment-presentation.ts';
import type { ListMessage, OpenList } from './json-list.ts';
import type { providerParams } from './path-parameters.ts';

/** A single object, because Fastify compiles each schema once per route. */
const appointmentSchema: Record<string, unknown> = { ...appointment };

/** The appointments as JSON. */
export function openAppointments(
  { appointments }: Pick<Clients, 'appointments'>,
  provider: Static<typeof providerParams>,
  filter: Omit<ListAppointmentsRequest, 'crmId' | 'providerReference'>,
  reply: FastifyReply,
): OpenList {
  const toJson = reply.compileSerializationSchema(appointmentSchema);
  return async function* messages(signal): AsyncGenerator<ListMessage> {
    for await (const message of appointments.listAppointments(provider, { ...filter, asJson: true }, signal)) {
      yield { json: jsonOf(message, toJson), nextCursor: message.nextCursor };
    }
  };
}

type ToJson = (appointment: ReturnType<typeof presentAppointment>) => string;

/** A calendar of the previous version answers without `json`. */
function jsonOf({ json, appointments }: ListAppointmentsResponse, toJson: ToJson): Buffer {
  return json ?? Buffer.from(appointments.map((each) => toJson(presentAppointment(each))).join(','));
}
