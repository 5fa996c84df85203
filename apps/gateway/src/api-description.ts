export interface ApiOwner {
  publicUrl: string;
  /** The operator's e-mail address for integrators; empty if there is none. */
  contactEmail: string;
}

/** What the API document says besides the operations. */
export function describeApi({ publicUrl, contactEmail }: ApiOwner) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Scheduling API',
      version: '1',
      description: introduction,
      contact: {
        name: 'Operator of this service',
        ...(contactEmail === '' ? { url: publicUrl } : { email: contactEmail }),
      },
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    externalDocs: { url: `${publicUrl}/guides`, description: 'Guides for integrators' },
    servers: [{ url: publicUrl }],
    security: [{ clientId: [] }],
    components: {
      securitySchemes: {
        clientId: {
          type: 'apiKey' as const,
          in: 'header',
          name: 'X-SERVICE-CLIENT-ID',
          description:
            'API key of the CRM. Its scope, `read`, `book` or `all`, says which operations it permits; each scope includes the ones before it.',
        },
      },
    },
    tags,
  };
}

const introduction = `Appointment booking for CRMs. Set up users, accounts and providers once, with opening hours. Then list what can be booked, and book it in one request.

- Every request carries an API key in the \`X-SERVICE-CLIENT-ID\` header, and the ID of that key’s CRM in its path.
- A key has a scope: \`read\`, \`book\` or \`all\`. Each includes the ones before it, and every operation says which one it needs.
- References are chosen by the client, by convention \`uniqueId@platformName\`. In a URL they are percent-encoded, once; generated clients do this for you.
- Date-times in requests, \`YYYY-MM-DDThh:mm\`, are local to the provider’s time zone; those in responses are in UTC. In a raw query string, write \`+\` as \`%2B\`.
- Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`; \`instance\` is the request ID, which is also in the \`X-Request-Id\` header.
- Unknown fields and parameters are ignored. With the header \`Prefer: handling=strict\` they are rejected, which finds typos while you develop.
- Retrying a creation with the same reference is safe. An \`Idempotency-Key\` makes every \`POST\` safe to retry.`;

/** In the order in which an integrator needs them. */
const tags = [
  {
    name: 'CRM',
    description:
      'The CRM of the key, as its operator has set it up. Ask for it first: the response shows that the key works, what it permits, and when it expires.',
  },
  {
    name: 'Users',
    description:
      'People with login and contact data. Create them first: every account and every provider is owned by a user, and staff are users, too. ' +
      'E-mail addresses and usernames are unique across the whole service, not only within the CRM, so a user may get a derived address. ' +
      'A user who owns an account or a provider cannot be deleted.',
  },
  {
    name: 'Accounts',
    description:
      'Booked service plans with their invoice data, each owned by a user. An account comes after its owner and before its providers. ' +
      'Its reference must have the form `uniqueId@platformName`, and its branch must be one of those listed; otherwise the response is 404.',
  },
  {
    name: 'Providers',
    description:
      'Calendar profiles, each owned by a user and assigned to an account. Timeslots, appointments and customers belong to a provider. ' +
      'Choose its time zone with care: every date-time in a request without an offset is local to it. Booking rules say how early and how late customers can book.',
  },
  {
    name: 'Staff',
    description:
      'The users who have access to a provider. Staff are optional: the owner of a provider always belongs to it and cannot be removed. ' +
      'A person who has not been created as a user can be invited by e-mail address and has no reference until then.',
  },
  {
    name: 'Timeslots',
    description:
      'Time windows in which a resource can be booked, divided by their raster into slots of equal length. Create them before customers book. ' +
      'Only a timeslot in the state `BOOKABLE` can be booked. A retry creates timeslots without a reference again, unless it has the same `Idempotency-Key`.',
  },
  {
    name: 'Opening hours',
    description:
      'When a resource is open: weekly windows and exceptions, by the clock of the provider’s time zone. Bookable timeslots are made from them at once, and every day for the day that ' +
      'comes into reach. Changed hours remove and add timeslots, and cancel nothing: the response lists the appointments outside of them.',
  },
  {
    name: 'Blocks',
    description:
      'Periods in which nothing of a resource can be booked, such as a training or an illness, whatever its timeslots and opening hours say. ' +
      'A block changes no timeslot and cancels nothing: the response lists the appointments in it. Without the block, everything can be booked as before.',
  },
  {
    name: 'Slots and bookings',
    description:
      'What can be booked, and bookings in one request. List the slots, and book one of them: this creates the appointment, the participation and, if necessary, the customer. ' +
      'Somebody else may be faster, so be prepared for 409 `slot.unavailable`; its `reason` says why. ' +
      'A reservation holds a seat for three minutes, for example while the customer fills in a form. ' +
      'A payment can take longer: book first, and cancel if it fails.',
  },
  {
    name: 'Appointments',
    description:
      'Booked slots with their participants, single or in a series. A CRM that manages its own calendar creates them directly; bookings of slots create them by themselves. ' +
      'Cancelling notifies the participants by mail, and the appointment remains; deleting without notification removes it.',
  },
  {
    name: 'Participations',
    description:
      'The bookings of customers: each links a customer to an appointment and holds the state. An appointment is never overbooked; when its seats are taken, the response is 409. ' +
      'States only move forward. A repeated creation returns the existing participation unless `onDuplicateRaise` is true.',
  },
  {
    name: 'Customers',
    description:
      'The contact data of the people who book. A customer belongs to one provider, and must exist before an appointment is booked for them, unless a booking of a slot creates them. ' +
      'The response for an unknown customer is 204. Deleting a customer erases their data in every service.',
  },
  {
    name: 'Events',
    description:
      'What has happened in the CRM, in order, whoever did it. Read the list from the start, remember the position in the `Link` header, and continue from there. ' +
      'Events contain no personal data and are kept for 30 days. To have them sent to you instead, create a webhook.',
  },
  {
    name: 'Webhooks',
    description:
      'Endpoints of the CRM to which events are sent, one at a time and in order, each signed according to Standard Webhooks 1.0. Create a webhook, store its secret, and test it. ' +
      'An event can arrive more than once, so recognise it by the `webhook-id` header. ' +
      'An endpoint that fails for about three days, or answers 410, is disabled.',
  },
  {
    name: 'Webhook requests',
    description:
      'What the service sends to the URL of a webhook. It is not an operation of the service: your endpoint implements it.',
  },
  {
    name: 'Calendars',
    description:
      'URLs to which a provider subscribes in Google Calendar, Apple Calendar or Outlook, to see the appointments there. Whoever has the URL reads the calendar, so it is shown only once. ' +
      'Delete one that others may have.',
  },
  {
    name: 'Erasures',
    description:
      'The deletion of everybody of whom the CRM knows an e-mail address. Request one when a person asks to be forgotten, and read it until every service has confirmed. ' +
      'An erasure cannot be undone. The address is not stored, so keep the ID in the response.',
  },
  {
    name: 'Sandbox',
    description:
      'What only a CRM has that an operator created as a sandbox, for the tests of its developers. Its mails reach nobody and can be read here, and its clock can be set. ' +
      'Everything else is as in any other CRM, with the same limits; login names are its own. ' +
      'For a CRM that is not a sandbox the response is 404.',
  },
];
