import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { AppointmentState } from '@scheduling/contracts/calendar/v1';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { Clients } from '../clients.ts';
import { type Admission, weightOfMany } from '../admission.ts';
import { given } from '../fields.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import {
  countSlots,
  deletionTarget,
  isSeries,
  toAppointmentChange,
  toCreateAppointment,
  toCreateSeries,
} from './appointment-requests.ts';
import {
  cancelAppointmentSchema,
  createAppointmentSchema,
  deleteAppointmentsSchema,
  getAppointmentSchema,
  listAppointmentsSchema,
  updateAppointmentSchema,
} from './appointment-schemas.ts';
import { requiredArgument, singleArgument } from './delete-arguments.ts';
import { listConfig, sendList } from './json-list.ts';
import { jsonType } from './json-stream.ts';
import { toMetadata } from '../metadata.ts';
import { wrapJson } from './wrap-json.ts';

/** interface 4.2. */
export function appointmentRoutes(
  { appointments }: Clients,
  publicUrl: string,
  admission: Admission,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/provider/:providerRef/appointments',
      { schema: listAppointmentsSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const { params, query } = request;
        return sendList({ request, reply, admission }, publicUrl, (signal) =>
          appointments.listAppointments(params, toFilter(query), signal),
        );
      },
    );

    app.get(
      '/provider/:providerRef/appointments/:appointmentRef',
      { schema: getAppointmentSchema, config: needsRead },
      async ({ params }, reply) => {
        const { json } = await appointments.getAppointment(params);
        return reply.type(jsonType).send(wrapJson('appointment', json));
      },
    );

    app.post(
      '/provider/:providerRef/appointments',
      { schema: createAppointmentSchema, config: { ...needsAll, weigh: weightOfCreation } },
      async (request, reply) => {
        const { created, json } = await create(appointments, request.params, request.body);
        return reply
          .code(created ? 201 : 200)
          .type(jsonType)
          .send(json);
      },
    );

    app.put(
      '/provider/:providerRef/appointments/:appointmentRef',
      { schema: updateAppointmentSchema, config: needsAll },
      async ({ params, body, query }, reply) => {
        const { json } = await appointments.updateAppointment(params, {
          ...toAppointmentChange(body),
          sendMails: query.sendMails,
        });
        return reply.type(jsonType).send(wrapJson('appointment', json));
      },
    );

    app.delete(
      '/provider/:providerRef/appointments',
      { schema: cancelAppointmentSchema, config: needsAll },
      async (request, reply) => {
        const { params, body, query } = request;
        const { json } = await appointments.cancelAppointment(params, {
          appointmentReference: requiredArgument('appointmentReference', body, query),
          message: singleArgument('message', body, query),
        });
        return reply.type(jsonType).send(wrapJson('appointment', json));
      },
    );

    app.delete(
      '/provider/:providerRef/appointments/withoutNotification',
      { schema: deleteAppointmentsSchema, config: needsAll },
      async (request, reply) => {
        const { params, body, query } = request;
        await appointments.deleteAppointments(params, { target: deletionTarget(body, query) });
        return reply.code(204).send(null);
      },
    );
  };
}

/** One appointment, or a series: answered as a list of its appointments. */
async function create(
  appointments: Clients['appointments'],
  provider: Static<typeof createAppointmentSchema.params>,
  body: Static<typeof createAppointmentSchema.body>,
): Promise<{ created: boolean; json: string }> {
  if (isSeries(body)) {
    const { json } = await appointments.createSeries(provider, toCreateSeries(body));
    return { created: true, json: `[${json.toString()}]` };
  }
  const { created, json } = await appointments.createAppointment(provider, toCreateAppointment(body));
  return { created, json: wrapJson('appointment', json) };
}

function toFilter(query: Static<typeof listAppointmentsSchema.querystring>) {
  return {
    productReference: given(query.productRef),
    resourceReference: given(query.resourceRef),
    state: query.state && AppointmentState[query.state],
    includeArchived: query.includeArchived,
    from: given(query.from),
    to: given(query.to),
    metadata: toMetadata(query.metadata),
    limit: query.limit,
    cursor: query.cursor,
  };
}

function weightOfCreation({ body }: FastifyRequest): number {
  const { participations } = body as { participations?: unknown[] | null };
  const request = body as Parameters<typeof isSeries>[0];
  return weightOfMany(isSeries(request) ? countSlots(request) : (participations?.length ?? 0));
}
