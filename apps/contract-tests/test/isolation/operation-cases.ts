import type { Place } from '@scheduling/test-stack/api-document';
import type { Answer } from '@scheduling/test-stack/client';
import { newAppointment, newTimeslot, type Practice, type TestCrm, unique } from '@scheduling/test-stack/crm';
import { newBlock } from '../blocks.ts';
import { newHours } from '../hours.ts';
import { newInvitation } from '../invitations.ts';

/** The kind of resource that a reference in a request refers to. */
export type Kind =
  | 'provider'
  | 'user'
  | 'staff'
  | 'account'
  | 'timeslot'
  | 'appointment'
  | 'series'
  | 'participation'
  | 'mail'
  | 'hold'
  | 'customer'
  | 'invitation'
  | 'block'
  | 'resource'
  | 'product'
  | 'erasure'
  | 'calendar'
  | 'webhook';

/** All resources of one provider, by kind. */
export type World = Record<Kind, string>;

export interface Request {
  path: Record<string, string>;
  query: Record<string, string>;
  body?: Record<string, unknown>;
}

/** An operation with every reference that it takes. */
export interface Case {
  request: (world: World, practice: Practice) => Request;
  /** Other requests, for places that cannot be used together with those of `request`. */
  alternatives?: Record<string, (world: World) => Request>;
  /** The places of references to existing resources: `path.providerRef`, `body.appointmentReference`. */
  existing: Record<string, Kind>;
  /** The places of references that the request creates. */
  made?: string[];
  /** The places of labels that are never looked up. */
  labels?: string[];
}

/** Nothing listens there. */
export const unreachable = 'http://127.0.0.1:1/';
const period = { from: '2031-01-01T00:00', to: '2031-12-31T00:00' };
const ofProvider = (world: World, more: Record<string, string> = {}): Record<string, string> => ({
  providerRef: world.provider,
  ...more,
});

/** Every operation of the API, by its id. */
export const cases: Record<string, Case> = {
  getCrm: { request: () => ({ path: {}, query: {} }), existing: {} },
  createUser: {
    request: () => ({
      path: {},
      query: {},
      body: { reference: newReference(), email: `${unique('u')}@test.example`, username: unique('u'), lastName: 'X' },
    }),
    existing: {},
    made: ['body.reference'],
  },
  getUser: {
    request: ({ user }) => ({ path: { reference: user }, query: {} }),
    existing: { 'path.reference': 'user' },
  },
  listUsers: { request: () => ({ path: {}, query: {} }), existing: {} },
  updateUser: {
    request: ({ user }) => ({ path: { reference: user }, query: {}, body: { lastName: 'Changed' } }),
    existing: { 'path.reference': 'user' },
  },
  deleteUser: {
    // The owner of an account cannot be deleted.
    request: ({ staff }) => ({ path: { reference: staff }, query: {} }),
    existing: { 'path.reference': 'user' },
  },
  requestVerification: {
    request: ({ user }) => ({ path: { reference: user }, query: {} }),
    existing: { 'path.reference': 'user' },
  },
  getUserVerification: {
    request: ({ user }) => ({ path: { reference: user }, query: {} }),
    existing: { 'path.reference': 'user' },
  },
  createAccount: {
    request: ({ user }) => ({
      path: {},
      query: {},
      body: { ownerReference: user, accountReference: newReference(), branch: 'misc' },
    }),
    existing: { 'body.ownerReference': 'user' },
    made: ['body.accountReference'],
    labels: ['body.invoiceTaxId'],
  },
  getAccount: {
    request: ({ account }) => ({ path: { reference: account }, query: {} }),
    existing: { 'path.reference': 'account' },
  },
  listAccounts: {
    request: ({ user }) => ({ path: {}, query: { ownerReference: user } }),
    existing: { 'query.ownerReference': 'user' },
  },
  updateAccount: {
    request: ({ account }) => ({ path: { reference: account }, query: {}, body: { branch: 'handyman' } }),
    existing: { 'path.reference': 'account' },
    labels: ['body.invoiceTaxId'],
  },
  deleteAccount: {
    request: ({ account }) => ({ path: { reference: account }, query: {} }),
    existing: { 'path.reference': 'account' },
  },
  createProvider: {
    request: ({ user, account }) => ({
      path: {},
      query: {},
      body: { reference: newReference(), ownerReference: user, accountReference: account, name: 'P' },
    }),
    existing: { 'body.ownerReference': 'user', 'body.accountReference': 'account' },
    made: ['body.reference'],
  },
  getProvider: {
    request: ({ provider }) => ({ path: { reference: provider }, query: {} }),
    existing: { 'path.reference': 'provider' },
  },
  listProviders: {
    request: ({ user, account }) => ({ path: {}, query: { ownerReference: user, accountReference: account } }),
    existing: { 'query.ownerReference': 'user', 'query.accountReference': 'account' },
  },
  updateProvider: {
    request: ({ provider }) => ({
      path: { reference: provider },
      query: {},
      body: { name: 'Changed', timeZone: 'Asia/Kolkata' },
    }),
    existing: { 'path.reference': 'provider' },
  },
  deleteProvider: {
    request: ({ provider }) => ({ path: { reference: provider }, query: {} }),
    existing: { 'path.reference': 'provider' },
  },
  listStaff: {
    request: (world) => ({ path: ofProvider(world), query: {} }),
    existing: { 'path.providerRef': 'provider' },
  },
  addStaff: {
    request: (world) => ({ path: ofProvider(world), query: {}, body: { reference: world.user } }),
    existing: { 'path.providerRef': 'provider', 'body.reference': 'user' },
  },
  removeStaff: {
    request: (world) => ({ path: ofProvider(world, { userRef: world.staff }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.userRef': 'staff' },
  },
  createTimeslots: {
    request: (world, practice) => ({
      path: ofProvider(world),
      query: {},
      body: { timeslots: [newTimeslot(practice)] },
    }),
    existing: { 'path.providerRef': 'provider' },
    made: ['body.timeslots.0.reference'],
    labels: ['body.timeslots.0.resourceReference'],
  },
  listTimeslots: {
    request: (world) => ({ path: ofProvider(world, { resourceRef: world.resource }), query: period }),
    existing: { 'path.providerRef': 'provider', 'path.resourceRef': 'resource' },
  },
  updateTimeslot: {
    request: (world) => ({
      path: ofProvider(world, { timeslotRef: world.timeslot }),
      query: {},
      body: { defaultCapacity: 9 },
    }),
    existing: { 'path.providerRef': 'provider', 'path.timeslotRef': 'timeslot' },
  },
  deleteTimeslot: {
    request: (world) => ({ path: ofProvider(world, { timeslotRef: world.timeslot }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.timeslotRef': 'timeslot' },
  },
  putHours: {
    request: (world) => ({
      path: ofProvider(world, { resourceRef: world.resource }),
      query: {},
      body: newHours({ exceptions: [{ from: '2031-07-01', to: '2031-07-31', windows: [] }] }),
    }),
    existing: { 'path.providerRef': 'provider' },
    labels: ['path.resourceRef'],
  },
  getHours: {
    request: (world) => ({ path: ofProvider(world, { resourceRef: world.resource }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.resourceRef': 'resource' },
  },
  // Can be repeated, so it is not rejected for a resource without any.
  deleteHours: {
    request: (world) => ({ path: ofProvider(world, { resourceRef: world.resource }), query: {} }),
    existing: { 'path.providerRef': 'provider' },
    labels: ['path.resourceRef'],
  },
  putHoursOfResources: {
    request: (world) => ({
      path: ofProvider(world),
      query: {},
      body: newHours({ resourceReferences: [world.resource] }),
    }),
    existing: { 'path.providerRef': 'provider' },
    labels: ['body.resourceReferences'],
  },
  createBlock: {
    request: (world) => ({
      path: ofProvider(world, { resourceRef: world.resource }),
      query: {},
      body: newBlock({ reference: newReference() }),
    }),
    existing: { 'path.providerRef': 'provider' },
    made: ['body.reference'],
    labels: ['path.resourceRef'],
  },
  listBlocks: {
    request: (world) => ({ path: ofProvider(world, { resourceRef: world.resource }), query: period }),
    existing: { 'path.providerRef': 'provider', 'path.resourceRef': 'resource' },
  },
  deleteBlock: {
    request: (world) => ({
      path: ofProvider(world, { resourceRef: world.resource, blockRef: world.block }),
      query: {},
    }),
    existing: { 'path.providerRef': 'provider', 'path.resourceRef': 'resource', 'path.blockRef': 'block' },
  },
  createAppointment: {
    request: (world, practice) => ({
      path: ofProvider(world),
      query: {},
      body: newAppointment(practice, {
        contactReference: world.user,
        participations: [{ reference: newReference(), name: 'A', email: 'a@customers.example', state: 'BOOKED' }],
      }),
    }),
    existing: { 'path.providerRef': 'provider' },
    made: ['body.reference', 'body.participations.0.reference'],
    labels: ['body.resourceReference', 'body.productReference', 'body.contactReference'],
  },
  listAppointments: {
    request: (world) => ({
      path: ofProvider(world),
      query: { productRef: world.product, resourceRef: world.resource },
    }),
    existing: { 'path.providerRef': 'provider', 'query.productRef': 'product', 'query.resourceRef': 'resource' },
  },
  getAppointment: {
    request: (world) => ({ path: ofProvider(world, { appointmentRef: world.appointment }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.appointmentRef': 'appointment' },
  },
  updateAppointment: {
    request: (world) => ({
      path: ofProvider(world, { appointmentRef: world.appointment }),
      query: {},
      body: { capacity: 99, contactReference: world.user },
    }),
    existing: { 'path.providerRef': 'provider', 'path.appointmentRef': 'appointment' },
    labels: ['body.contactReference'],
  },
  cancelAppointment: {
    request: (world) => ({
      path: ofProvider(world),
      query: { appointmentReference: world.appointment },
      body: { appointmentReference: world.appointment, message: 'm' },
    }),
    existing: {
      'path.providerRef': 'provider',
      'query.appointmentReference': 'appointment',
      'body.appointmentReference': 'appointment',
    },
  },
  deleteAppointmentsWithoutNotification: {
    request: (world) => ({
      path: ofProvider(world),
      query: { seriesId: world.series },
      body: { seriesId: world.series },
    }),
    existing: {
      'path.providerRef': 'provider',
      'query.seriesId': 'series',
      'body.seriesId': 'series',
      'query.appointmentReference': 'appointment',
      'body.appointmentReference': 'appointment',
    },
  },
  listParticipations: {
    request: (world) => ({ path: ofProvider(world), query: { customerRef: world.customer } }),
    existing: { 'path.providerRef': 'provider', 'query.customerRef': 'customer' },
  },
  createParticipation: {
    request: (world) => ({
      path: ofProvider(world),
      query: {},
      body: {
        reference: newReference(),
        appointmentReference: world.appointment,
        customerReference: world.customer,
        state: 'BOOKED',
      },
    }),
    existing: {
      'path.providerRef': 'provider',
      'body.appointmentReference': 'appointment',
      'body.customerReference': 'customer',
    },
    made: ['body.reference'],
  },
  getParticipation: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  listSlots: {
    request: (world) => ({
      path: ofProvider(world),
      query: { resourceRef: world.resource, from: '2031-05-01T00:00', to: '2031-05-02T00:00' },
    }),
    existing: { 'path.providerRef': 'provider', 'query.resourceRef': 'resource' },
    // Free places are listed for every product.
    labels: ['query.productRef'],
  },
  createBooking: {
    request: (world) => ({
      path: ofProvider(world),
      query: {},
      body: { ...newBooking(world), customer: { customerReference: newReference(), userName: 'C' } },
    }),
    alternatives: {
      'body.customerReference': (world) => ({
        path: ofProvider(world),
        query: {},
        body: { ...newBooking(world), customerReference: world.customer },
      }),
      'body.appointmentReference': (world) => ({
        path: ofProvider(world),
        query: {},
        body: { reference: newReference(), customerReference: world.customer, state: 'BOOKED' },
      }),
    },
    existing: {
      'path.providerRef': 'provider',
      'body.timeslotReference': 'timeslot',
      'body.appointmentReference': 'appointment',
      'body.customerReference': 'customer',
    },
    made: ['body.reference', 'body.customer.customerReference'],
    labels: ['body.productReference', 'body.contactReference'],
  },
  changeBooking: {
    request: (world) => ({
      path: ofProvider(world, { participationRef: world.participation }),
      query: {},
      body: { timeslotReference: world.timeslot, start: '2031-05-01T09:00' },
    }),
    alternatives: {
      'body.appointmentReference': (world) => ({
        path: ofProvider(world, { participationRef: world.participation }),
        query: {},
        body: {},
      }),
      'body.customerReference': (world) => ({
        path: ofProvider(world, { participationRef: world.hold }),
        query: {},
        body: { state: 'BOOKED', customerReference: world.customer },
      }),
    },
    existing: {
      'path.providerRef': 'provider',
      'path.participationRef': 'participation',
      'body.timeslotReference': 'timeslot',
      'body.appointmentReference': 'appointment',
      'body.customerReference': 'customer',
    },
    // A customer is created as createBooking creates one.
    labels: ['body.productReference', 'body.contactReference', 'body.customer.customerReference'],
  },
  getBookingRules: {
    request: (world) => ({ path: ofProvider(world), query: {} }),
    existing: { 'path.providerRef': 'provider' },
  },
  updateBookingRules: {
    request: (world) => ({ path: ofProvider(world), query: {}, body: { maxPerPerson: 9 } }),
    existing: { 'path.providerRef': 'provider' },
    labels: ['body.offers.0.productReference', 'body.offers.0.resources.0.resourceReference'],
  },
  updateParticipation: {
    request: (world) => ({
      path: ofProvider(world, { participationRef: world.participation }),
      query: {},
      body: { state: 'CANCELED' },
    }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  getParticipationLink: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  listParticipationMails: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  resendMail: {
    request: (world) => ({
      path: ofProvider(world, { participationRef: world.participation, mailId: world.mail }),
      query: {},
    }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation', 'path.mailId': 'mail' },
  },
  getCustomer: {
    request: (world) => ({ path: ofProvider(world, { customerRef: world.customer }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
  },
  listCustomers: {
    request: (world) => ({ path: ofProvider(world), query: { q: world.customer } }),
    existing: { 'path.providerRef': 'provider' },
  },
  createCustomer: {
    request: (world) => ({
      path: ofProvider(world),
      query: {},
      body: { customerReference: newReference(), providerReference: world.provider, userName: 'C' },
    }),
    existing: { 'path.providerRef': 'provider', 'body.providerReference': 'provider' },
    made: ['body.customerReference'],
  },
  updateCustomer: {
    request: (world) => ({
      path: ofProvider(world, { customerRef: world.customer }),
      query: {},
      body: { customerReference: newReference(), note: 'changed' },
    }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
    made: ['body.customerReference'],
  },
  deleteCustomer: {
    request: (world) => ({
      path: ofProvider(world, { customerRef: world.customer }),
      query: { ignoreFutureAppointments: '' },
    }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
  },
  createInvitation: {
    request: (world, practice) => ({
      path: ofProvider(world, { customerRef: world.customer }),
      query: {},
      body: newInvitation(practice),
    }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
    // That of an offer, which is a rule of the provider.
    labels: ['body.productReference'],
  },
  listInvitations: {
    request: (world) => ({ path: ofProvider(world, { customerRef: world.customer }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
  },
  deleteInvitation: {
    request: (world) => ({
      path: ofProvider(world, { customerRef: world.customer, invitationId: world.invitation }),
      query: {},
    }),
    existing: {
      'path.providerRef': 'provider',
      'path.customerRef': 'customer',
      'path.invitationId': 'invitation',
    },
  },
  requestErasure: {
    request: () => ({ path: {}, query: {}, body: { email: 'nobody@customers.example' } }),
    existing: {},
  },
  getErasure: {
    request: ({ erasure }) => ({ path: { erasureId: erasure }, query: {} }),
    existing: { 'path.erasureId': 'erasure' },
  },
  createCalendar: {
    request: (world) => ({
      path: ofProvider(world),
      query: {},
      body: {
        reference: newReference(),
        resourceReference: world.resource,
        contactReference: 'contact@test',
        details: 'CONTACT',
      },
    }),
    existing: { 'path.providerRef': 'provider' },
    made: ['body.reference'],
    labels: ['body.resourceReference', 'body.contactReference'],
  },
  listCalendars: {
    request: (world) => ({ path: ofProvider(world), query: {} }),
    existing: { 'path.providerRef': 'provider' },
  },
  deleteCalendar: {
    request: (world) => ({ path: ofProvider(world, { calendarRef: world.calendar }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.calendarRef': 'calendar' },
  },
  replaceCalendarSecret: {
    request: (world) => ({ path: ofProvider(world, { calendarRef: world.calendar }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.calendarRef': 'calendar' },
  },
  createWebhook: {
    request: ({ provider }) => ({
      path: {},
      query: {},
      body: { reference: newReference(), url: unreachable, providerReference: provider },
    }),
    existing: { 'body.providerReference': 'provider' },
    made: ['body.reference'],
  },
  listWebhooks: { request: () => ({ path: {}, query: {} }), existing: {} },
  getWebhook: {
    request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }),
    existing: { 'path.webhookRef': 'webhook' },
  },
  updateWebhook: {
    request: ({ webhook, provider }) => ({
      path: { webhookRef: webhook },
      query: {},
      body: { providerReference: provider },
    }),
    existing: { 'path.webhookRef': 'webhook', 'body.providerReference': 'provider' },
  },
  deleteWebhook: {
    request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }),
    existing: { 'path.webhookRef': 'webhook' },
  },
  rotateSecret: {
    request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }),
    existing: { 'path.webhookRef': 'webhook' },
  },
  testWebhook: {
    request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }),
    existing: { 'path.webhookRef': 'webhook' },
  },
  listAttempts: {
    request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }),
    existing: { 'path.webhookRef': 'webhook' },
  },
  getSandboxClock: { request: () => ({ path: {}, query: {} }), existing: {} },
  setSandboxClock: { request: () => ({ path: {}, query: {}, body: { now: null } }), existing: {} },
  listSandboxMails: { request: () => ({ path: {}, query: {} }), existing: {} },
  listEvents: {
    request: ({ provider }) => ({ path: {}, query: { providerRef: provider } }),
    existing: { 'query.providerRef': 'provider' },
  },
};

function newBooking(world: World): Record<string, unknown> {
  return {
    reference: newReference(),
    timeslotReference: world.timeslot,
    start: '2031-05-01T09:00',
    productReference: world.product,
    state: 'BOOKED',
  };
}

/** All of the same length, so that responses containing them have the same length, too. */
export function newReference(): string {
  return `${unique('thing')}@test`;
}

/** All with the same request id, so that responses differ only in their content. */
export function sendRequest(crm: TestCrm, place: Place, { path, query, body }: Request): Promise<Answer> {
  const address = place.path
    .replace('/crms/{crmId}', '')
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name]!));
  return crm.send(place.method.toUpperCase(), address, body, { query, headers: { 'x-request-id': 'isolation' } });
}
