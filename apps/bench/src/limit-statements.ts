import { AppointmentState } from '@scheduling/contracts/calendar/v1';
import { AppointmentChange, CustomerChange } from '@scheduling/contracts/events/v1';
import { type EventJson, events } from '@scheduling/events';
import type { SlotsOf } from './requests.ts';
import { customers } from './seed.ts';
import type { Tenant } from './tenant.ts';

/**
 * What the service does for one request, in SQL alone. `:name` in a statement stands for a variable; `:n` counts the
 * transactions of a client, whose number is `:client_id`. The columns of a statement that ends with `\gset` become
 * variables.
 */
export interface Transaction {
  database: 'calendar' | 'customer';
  /** Random numbers below these. */
  variables?: Record<string, number>;
  statements: string[];
  /** What a transaction adds to the table, to be sure that it did something. */
  adds?: { table: string; rows: number };
}

/** The number of clients of a limit. */
export const limitClients = 8;

/** The transactions of a tenant, as the services run them. A statement that changes in a service changes here. */
// oxlint-disable-next-line eslint/max-lines-per-function -- a table
export function transactionsOf(tenant: Tenant) {
  const { crmId, providerId, providerReference } = tenant;
  const scope = `crm_id = '${crmId}' AND provider_id = '${providerId}'`;
  const findProvider = `SELECT * FROM provider WHERE crm_id = '${crmId}' AND reference = '${providerReference}'`;

  return {
    book: (appointments: number, { mails = false } = {}): Transaction => ({
      database: 'calendar',
      variables: { appointment: appointments, customer: customers },
      statements: [
        `SELECT create_participation(jsonb_build_object(
           'id', uuidv7(), 'reference', gen_random_uuid(), 'appointmentReference', 'a-' || :appointment::text, 'customerReference', 'c-' || :customer::text)
           || '${json({ crmId, providerId, providerVersion: 1, state: 'BOOKED', ignoreCapacity: false, onDuplicateRaise: false, sendMails: mails, origin })}')`,
      ],
      adds: { table: 'participation', rows: 1 },
    }),

    /** As `bookSlot` in requests.ts: no two transactions book the same place. */
    bookSlot: ({ timeslots, resources }: SlotsOf): Transaction => ({
      database: 'calendar',
      variables: { customer: customers },
      statements: [
        `SELECT book_slot(jsonb_build_object(
           'id', uuidv7(), 'reference', gen_random_uuid(), 'newReference', gen_random_uuid(), 'timeslotReference', 't-' || number % ${timeslots},
           'startsAt', timestamptz '2031-01-01 08:00Z' + number % ${timeslots} / ${resources} * interval '1 day' + number / ${timeslots} * interval '30 minutes',
           'customerReference', 'c-' || :customer::text)
           || '${json({ ...slotContent, crmId, providerId, origin })}')
           FROM (SELECT :n::int * ${limitClients} + :client_id::int) AS given (number)`,
      ],
      adds: { table: 'appointment', rows: 1 },
    }),

    /**
     * Each participation makes three moves, and no two clients move the same one: their number is a multiple of that of
     * the clients.
     */
    move: (participations: number): Transaction => ({
      database: 'calendar',
      statements: [
        movable(tenant, `((:n::int / 30 * 10 + :n::int % 10) * ${limitClients} + :client_id::int) % ${participations}`),
        `SELECT update_participation(jsonb_build_object('participationId', :id::text, 'state', :next::text)
           || '${json({ crmId, providerId, providerVersion: 1, ignoreCapacity: false, sendMails: false, origin })}')`,
      ],
      adds: { table: 'outbox', rows: 1 },
    }),

    createAppointment: (): Transaction => ({
      database: 'calendar',
      variables: { day: 1_000 },
      statements: [
        `SELECT create_appointment(jsonb_build_object(
           'reference', gen_random_uuid(), 'startsAt', day, 'endsAt', day + interval '1 hour', 'participations', jsonb_build_array(
             jsonb_build_object('id', uuidv7(), 'reference', gen_random_uuid()) || grace, jsonb_build_object('id', uuidv7(), 'reference', gen_random_uuid()) || grace))
           || '${json({ ...appointmentContent, crmId, providerId, origin })}')
           FROM (SELECT date '2031-01-01' + :day::int, '${json({ name: 'Grace Hopper', email: 'g@customers.example', state: 'BOOKED' })}'::jsonb) AS values (day, grace)`,
      ],
      adds: { table: 'appointment', rows: 1 },
    }),

    createSeries: (length: number): Transaction => ({
      database: 'calendar',
      variables: { day: 1_000 },
      statements: [
        findProvider,
        'BEGIN ISOLATION LEVEL READ COMMITTED',
        'SELECT uuidv7() AS series \\gset',
        `INSERT INTO appointment (crm_id, provider_id, reference, series_id, starts_at, ends_at, taken, content_digest, capacity, accept_bookings, resource_reference, product_reference, description)
         SELECT '${crmId}', '${providerId}', uuidv7() || '@scheduling', :series::text, start, start + interval '1 minute', 0, sha256('x'), 10, false, 'room-0', 'cut', 'Haircut'
           FROM generate_series(1, ${length}) AS number, LATERAL (SELECT date '2031-01-01' + :day::int + number * interval '1 minute') AS starts (start)`,
        `INSERT INTO outbox (subject, data, request_id)
         SELECT '${events.appointmentChanged.subject}', '${json(createdAppointment(crmId, providerId))}', '${origin.request_id}'
           FROM generate_series(1, ${length})`,
        `SELECT * FROM appointment WHERE ${scope} AND series_id = :series::text ORDER BY starts_at`,
        'COMMIT',
      ],
      adds: { table: 'appointment', rows: length },
    }),

    timeslotsOfWeek: (resources: number, days: number): Transaction => ({
      database: 'calendar',
      variables: { resource: resources, day: days },
      statements: [findProvider, timeslotsJson(scope, "'room-' || :resource::text", ':day::int', 7)],
    }),

    appointmentsOfDay: (days: number): Transaction => ({
      database: 'calendar',
      variables: { day: days },
      statements: [
        findProvider,
        appointmentsJson(
          `${scope} AND starts_at < date '2031-01-01' + :day::int + 1 AND ends_at > date '2031-01-01' + :day::int`,
        ),
      ],
    }),

    slots: (days: number, filter = {}): string => {
      const request = {
        crmId,
        providerId,
        ...filter,
        from: '2031-01-01T00:00Z',
        to: new Date(Date.UTC(2031, 0, 1 + days)),
        ignoreNotice: false,
        rows: 2_000,
      };
      return `SELECT * FROM read_slots('${json(request)}')`;
    },

    allAppointments: (): string => appointmentsJson(scope),

    getCustomer: (): Transaction => ({
      database: 'customer',
      variables: { customer: customers },
      statements: [
        `SELECT get_customer(jsonb_build_object('customerReference', 'c-' || :customer::text) || '${json({ crmId, providerReference })}')`,
      ],
    }),

    createCustomer: (): Transaction => ({
      database: 'customer',
      statements: [
        `SELECT create_customer(jsonb_build_object('id', uuidv7(), 'reference', gen_random_uuid(), 'email', gen_random_uuid() || '@customers.example')
           || '${json({ crmId, providerId, providerReference, userName: 'Grace Hopper', language: 'en', event: eventRow(events.customerChanged, { crmId, customerId: providerId, version: 1, providerId, change: CustomerChange.CREATED, actor: origin.actor }) })}')`,
      ],
      adds: { table: 'customer', rows: 1 },
    }),
  };
}

/** With a space after each colon: what follows one without is the name of a variable, even in a text. */
function json(value: unknown): string {
  return JSON.stringify(value, undefined, 1).replaceAll(/\n\s*/g, ' ');
}

const origin = { actor: 'person', request_id: '00000000-0000-7000-8000-000000000000', traceparent: null };

function eventRow<Data>({ subject, toJson }: { subject: string; toJson: (data: Data) => EventJson }, data: Data) {
  const { request_id, traceparent } = origin;
  return { subject, data: toJson(data), request_id, traceparent };
}

function createdAppointment(crmId: string, providerId: string) {
  const { CREATED: change } = AppointmentChange;
  return events.appointmentChanged.toJson({
    crmId,
    appointmentId: providerId,
    providerId,
    change,
    fromState: AppointmentState.UNSPECIFIED,
    version: 1,
    actor: origin.actor,
    ordinal: 1,
    capacity: 1,
  });
}

const slotContent = {
  providerVersion: 1,
  productReference: 'cut',
  contentDigest: '00',
  description: 'Haircut',
  ignoreNotice: false,
  state: 'BOOKED',
  sendMails: false,
};

const appointmentContent = {
  resourceReference: 'room-0',
  productReference: 'cut',
  description: 'Haircut',
  capacity: 10,
  acceptBookings: false,
  contentDigest: '00',
  providerVersion: 1,
  archiveAfterDays: 365,
};

const joinCustomer =
  'LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id';
const messages = `ARRAY(SELECT text FROM participation_message AS message
  WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id ORDER BY message.version)`;
function movable({ crmId, providerId }: Tenant, number: string): string {
  return `SELECT found ->> 'id' AS id,
      CASE (found ->> 'participation')::json ->> 'state' WHEN 'REQUESTED' THEN 'BOOKED' WHEN 'BOOKED' THEN 'DELETED' ELSE 'CANCELED' END AS next
    FROM read_participation(jsonb_build_object('reference', 'p-' || (${number})) || '${json({ crmId, providerId })}') AS found \\gset`;
}

/** The appointments as they are in a response, one per row. */
function appointmentsJson(condition: string): string {
  return `SELECT ${appointmentJson} FROM appointment WHERE ${condition} ORDER BY starts_at, id`;
}

const appointmentJson = `json_build_object('reference', reference, 'acceptBookings', accept_bookings, 'address', address, 'archived', ends_at <= now() - interval '365 days',
  'capacity', capacity, 'contactReference', contact_reference, 'description', description, 'start', starts_at, 'end', ends_at, 'notes', notes, 'price', price_value,
  'productReference', product_reference, 'resourceReference', resource_reference, 'seriesId', series_id, 'state', state, 'participations', (
    SELECT coalesce(json_agg(json_build_object('reference', participation.reference, 'email', coalesce(customer.email, participation.email),
             'mobile', coalesce(customer.mobile, participation.mobile), 'name', coalesce(customer.user_name, participation.name, ''), 'note', participation.note,
             'state', participation.state, 'messages', ${messages}) ORDER BY participation.id), '[]')
      FROM participation ${joinCustomer} WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id))`;

function timeslotsJson(scope: string, resource: string, firstDay: string, days: number): string {
  return `SELECT json_build_object('reference', reference, 'resourceReference', resource_reference, 'start', starts_at, 'end', ends_at, 'raster', raster,
      'defaultCapacity', default_capacity, 'defaultAcceptBookings', default_accept_bookings, 'address', address, 'state', state, 'appointments', (
        SELECT coalesce(json_agg(${appointmentJson} ORDER BY starts_at, id), '[]') FROM appointment
         WHERE appointment.crm_id = timeslot.crm_id AND appointment.provider_id = timeslot.provider_id AND appointment.resource_reference = timeslot.resource_reference
           AND appointment.starts_at >= timeslot.starts_at AND appointment.starts_at < timeslot.ends_at AND appointment.ends_at <= timeslot.ends_at))
    FROM timeslot WHERE ${scope} AND resource_reference = ${resource} AND starts_at < date '2031-01-01' + ${firstDay} + ${days} AND ends_at > date '2031-01-01' + ${firstDay}
   ORDER BY starts_at, id`;
}
