import { waitUntil } from '@scheduling/embedded';
import { type DatabaseService, databaseServices } from '@scheduling/stack';
import { sumSamples } from '@scheduling/testing';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, apiDocument } from './client.ts';
import { createAppointment, createCrm, createParticipation, createPractice, newAppointment, newTimeslot, type Practice, type TestCrm, unique } from './crm.ts';
import { query } from './databases.ts';
import { waitForFeed } from './feed.ts';
import { sentMails } from './mails.ts';

/** The kind of resource that a reference in a request refers to. */
type Kind = 'provider' | 'user' | 'staff' | 'account' | 'timeslot' | 'appointment' | 'series' | 'participation' | 'mail' | 'hold' | 'customer' | 'resource' | 'product' | 'erasure' | 'webhook';

/** All resources of one provider, by kind. */
type World = Record<Kind, string>;

interface Request {
  path: Record<string, string>;
  query: Record<string, string>;
  body?: Record<string, unknown>;
}

/** An operation with every reference that it takes. */
interface Case {
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
const unreachable = 'http://127.0.0.1:1/';
const period = { from: '2031-01-01T00:00', to: '2031-12-31T00:00' };
const ofProvider = (world: World, more: Record<string, string> = {}): Record<string, string> => ({ providerRef: world.provider, ...more });

const cases: Record<string, Case> = {
  createUser: {
    request: () => ({ path: {}, query: {}, body: { reference: newReference(), email: `${unique('u')}@test.example`, username: unique('u'), lastName: 'X' } }),
    existing: {},
    made: ['body.reference'],
  },
  getUser: { request: ({ user }) => ({ path: { reference: user }, query: {} }), existing: { 'path.reference': 'user' } },
  updateUser: {
    request: ({ user }) => ({ path: { reference: user }, query: {}, body: { lastName: 'Changed' } }),
    existing: { 'path.reference': 'user' },
  },
  deleteUser: {
    // The owner of an account cannot be deleted.
    request: ({ staff }) => ({ path: { reference: staff }, query: {} }),
    existing: { 'path.reference': 'user' },
  },
  requestVerification: { request: ({ user }) => ({ path: { reference: user }, query: {} }), existing: { 'path.reference': 'user' } },
  createAccount: {
    request: ({ user }) => ({ path: {}, query: {}, body: { ownerReference: user, accountReference: newReference(), branch: 'misc' } }),
    existing: { 'body.ownerReference': 'user' },
    made: ['body.accountReference'],
    labels: ['body.invoiceTaxId'],
  },
  getAccount: { request: ({ account }) => ({ path: { reference: account }, query: {} }), existing: { 'path.reference': 'account' } },
  updateAccount: {
    request: ({ account }) => ({ path: { reference: account }, query: {}, body: { branch: 'handyman' } }),
    existing: { 'path.reference': 'account' },
    labels: ['body.invoiceTaxId'],
  },
  createProvider: {
    request: ({ user, account }) => ({ path: {}, query: {}, body: { reference: newReference(), ownerReference: user, accountReference: account, name: 'P' } }),
    existing: { 'body.ownerReference': 'user', 'body.accountReference': 'account' },
    made: ['body.reference'],
  },
  getProvider: { request: ({ provider }) => ({ path: { reference: provider }, query: {} }), existing: { 'path.reference': 'provider' } },
  updateProvider: {
    request: ({ provider }) => ({ path: { reference: provider }, query: {}, body: { name: 'Changed', timeZone: 'Asia/Kolkata' } }),
    existing: { 'path.reference': 'provider' },
  },
  listStaff: { request: (world) => ({ path: ofProvider(world), query: {} }), existing: { 'path.providerRef': 'provider' } },
  addStaff: {
    request: (world) => ({ path: ofProvider(world), query: {}, body: { reference: world.user } }),
    existing: { 'path.providerRef': 'provider', 'body.reference': 'user' },
  },
  removeStaff: {
    request: (world) => ({ path: ofProvider(world, { userRef: world.staff }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.userRef': 'staff' },
  },
  createTimeslots: {
    request: (world, practice) => ({ path: ofProvider(world), query: {}, body: { timeslots: [newTimeslot(practice)] } }),
    existing: { 'path.providerRef': 'provider' },
    made: ['body.timeslots.0.reference'],
    labels: ['body.timeslots.0.resourceReference'],
  },
  listTimeslots: {
    request: (world) => ({ path: ofProvider(world, { resourceRef: world.resource }), query: period }),
    existing: { 'path.providerRef': 'provider', 'path.resourceRef': 'resource' },
  },
  updateTimeslot: {
    request: (world) => ({ path: ofProvider(world, { timeslotRef: world.timeslot }), query: {}, body: { defaultCapacity: 9 } }),
    existing: { 'path.providerRef': 'provider', 'path.timeslotRef': 'timeslot' },
  },
  deleteTimeslot: {
    request: (world) => ({ path: ofProvider(world, { timeslotRef: world.timeslot }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.timeslotRef': 'timeslot' },
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
    request: (world) => ({ path: ofProvider(world), query: { productRef: world.product, resourceRef: world.resource } }),
    existing: { 'path.providerRef': 'provider', 'query.productRef': 'product', 'query.resourceRef': 'resource' },
  },
  getAppointment: {
    request: (world) => ({ path: ofProvider(world, { appointmentRef: world.appointment }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.appointmentRef': 'appointment' },
  },
  updateAppointment: {
    request: (world) => ({ path: ofProvider(world, { appointmentRef: world.appointment }), query: {}, body: { capacity: 99, contactReference: world.user } }),
    existing: { 'path.providerRef': 'provider', 'path.appointmentRef': 'appointment' },
    labels: ['body.contactReference'],
  },
  cancelAppointment: {
    request: (world) => ({
      path: ofProvider(world),
      query: { appointmentReference: world.appointment },
      body: { appointmentReference: world.appointment, message: 'm' },
    }),
    existing: { 'path.providerRef': 'provider', 'query.appointmentReference': 'appointment', 'body.appointmentReference': 'appointment' },
  },
  deleteAppointmentsWithoutNotification: {
    request: (world) => ({ path: ofProvider(world), query: { seriesId: world.series }, body: { seriesId: world.series } }),
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
      body: { reference: newReference(), appointmentReference: world.appointment, customerReference: world.customer, state: 'BOOKED' },
    }),
    existing: { 'path.providerRef': 'provider', 'body.appointmentReference': 'appointment', 'body.customerReference': 'customer' },
    made: ['body.reference'],
  },
  getParticipation: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  listSlots: {
    request: (world) => ({ path: ofProvider(world), query: { resourceRef: world.resource, from: '2031-05-01T00:00', to: '2031-05-02T00:00' } }),
    existing: { 'path.providerRef': 'provider', 'query.resourceRef': 'resource' },
    // Free places are listed for every product.
    labels: ['query.productRef'],
  },
  createBooking: {
    request: (world) => ({ path: ofProvider(world), query: {}, body: { ...newBooking(world), customer: { customerReference: newReference(), userName: 'C' } } }),
    alternatives: {
      'body.customerReference': (world) => ({ path: ofProvider(world), query: {}, body: { ...newBooking(world), customerReference: world.customer } }),
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
      'body.appointmentReference': (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {}, body: {} }),
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
  getBookingRules: { request: (world) => ({ path: ofProvider(world), query: {} }), existing: { 'path.providerRef': 'provider' } },
  updateBookingRules: {
    request: (world) => ({ path: ofProvider(world), query: {}, body: { maxPerPerson: 9 } }),
    existing: { 'path.providerRef': 'provider' },
    labels: ['body.offers.0.productReference', 'body.offers.0.resources.0.resourceReference'],
  },
  updateParticipation: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {}, body: { state: 'CANCELED' } }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  listParticipationMails: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation }), query: {} }),
    existing: { 'path.providerRef': 'provider', 'path.participationRef': 'participation' },
  },
  resendMail: {
    request: (world) => ({ path: ofProvider(world, { participationRef: world.participation, mailId: world.mail }), query: {} }),
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
    request: (world) => ({ path: ofProvider(world), query: {}, body: { customerReference: newReference(), providerReference: world.provider, userName: 'C' } }),
    existing: { 'path.providerRef': 'provider', 'body.providerReference': 'provider' },
    made: ['body.customerReference'],
  },
  updateCustomer: {
    request: (world) => ({ path: ofProvider(world, { customerRef: world.customer }), query: {}, body: { customerReference: newReference(), note: 'changed' } }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
    made: ['body.customerReference'],
  },
  deleteCustomer: {
    request: (world) => ({ path: ofProvider(world, { customerRef: world.customer }), query: { ignoreFutureAppointments: '' } }),
    existing: { 'path.providerRef': 'provider', 'path.customerRef': 'customer' },
  },
  requestErasure: { request: () => ({ path: {}, query: {}, body: { email: 'nobody@customers.example' } }), existing: {} },
  getErasure: { request: ({ erasure }) => ({ path: { erasureId: erasure }, query: {} }), existing: { 'path.erasureId': 'erasure' } },
  createWebhook: {
    request: ({ provider }) => ({ path: {}, query: {}, body: { reference: newReference(), url: unreachable, providerReference: provider } }),
    existing: { 'body.providerReference': 'provider' },
    made: ['body.reference'],
  },
  listWebhooks: { request: () => ({ path: {}, query: {} }), existing: {} },
  getWebhook: { request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }), existing: { 'path.webhookRef': 'webhook' } },
  updateWebhook: {
    request: ({ webhook, provider }) => ({ path: { webhookRef: webhook }, query: {}, body: { providerReference: provider } }),
    existing: { 'path.webhookRef': 'webhook', 'body.providerReference': 'provider' },
  },
  deleteWebhook: { request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }), existing: { 'path.webhookRef': 'webhook' } },
  rotateSecret: { request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }), existing: { 'path.webhookRef': 'webhook' } },
  testWebhook: { request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }), existing: { 'path.webhookRef': 'webhook' } },
  listAttempts: { request: ({ webhook }) => ({ path: { webhookRef: webhook }, query: {} }), existing: { 'path.webhookRef': 'webhook' } },
  getSandboxClock: { request: () => ({ path: {}, query: {} }), existing: {} },
  setSandboxClock: { request: () => ({ path: {}, query: {}, body: { now: null } }), existing: {} },
  listSandboxMails: { request: () => ({ path: {}, query: {} }), existing: {} },
  listEvents: { request: ({ provider }) => ({ path: {}, query: { providerRef: provider } }), existing: { 'query.providerRef': 'provider' } },
};

function newBooking(world: World): Record<string, unknown> {
  return { reference: newReference(), timeslotReference: world.timeslot, start: '2031-05-01T09:00', productReference: world.product, state: 'BOOKED' };
}

/** Customers are identified per provider, everything else per CRM; so only for these may the same reference exist twice in a CRM. */
const namedByProvider = new Set(['createCustomer', 'updateCustomer']);
/** Kinds that belong to the CRM and not to a provider, so that no other provider has its own. */
const ofCrm = new Set<Kind>(['provider', 'user', 'account', 'erasure', 'webhook']);

const document = await apiDocument();
const operations = document.places.map(({ operation }) => operation.operationId);

let crm: TestCrm;
let foreignCrm: TestCrm;
let own: { practice: Practice; world: World };
let sibling: World;
let foreign: World;
const absent = Object.fromEntries(
  ['provider', 'user', 'staff', 'account', 'timeslot', 'appointment', 'series', 'participation', 'mail', 'hold', 'customer', 'resource', 'product', 'erasure', 'webhook'].map((kind) => [kind, newReference()]),
) as World;

beforeAll(async () => {
  [crm, foreignCrm] = [await createCrm({ sandbox: true }), await createCrm({ sandbox: true })];
  own = await createWorld(crm);
  sibling = (await createWorld(crm)).world;
  foreign = (await createWorld(foreignCrm)).world;
  await waitUntilQuiet();
});

/** All of the same length, so that responses containing them have the same length, too. */
function newReference(): string {
  return `${unique('thing')}@test`;
}

async function createWorld(owner: TestCrm): Promise<{ practice: Practice; world: World }> {
  const practice = await createPractice(owner);
  const staff = newReference();
  await owner.post('/user', { reference: staff, email: `${unique('s')}@test.example`, username: unique('s'), lastName: 'Staff' });
  await owner.post(`${practice.at}/staff`, { reference: staff });
  const appointment = await createAppointment(practice, { capacity: 100 });
  const { reference: _reference, start: _start, end: _end, ...series } = newAppointment(practice);
  const { body } = await owner.post<{ seriesId: string }[]>(`${practice.at}/appointments`, {
    ...series,
    series_data: { from: '2031-04-01T09:00', to: '2031-04-01T10:00', raster: 30 },
  });
  const timeslot = newTimeslot(practice, { start: '2031-05-01T09:00', end: '2031-05-01T10:00', defaultCapacity: 100 });
  await owner.post(`${practice.at}/timeslots`, { timeslots: [timeslot] });
  const participation = await createParticipation(practice, appointment);
  const [mail] = await sentMails(practice, participation);
  const hold = newReference();
  const other = newTimeslot(practice, { start: '2031-05-02T09:00', end: '2031-05-02T10:00' });
  await owner.post(`${practice.at}/timeslots`, { timeslots: [other] });
  const place = { timeslotReference: other['reference'], start: '2031-05-02T09:30', productReference: practice.product };
  await owner.post(`${practice.at}/bookings`, { ...place, reference: hold, state: 'RESERVED' });
  const { body: erased } = await owner.post<{ erasure: { id: string } }>('/erasures', { email: 'nobody@customers.example' });
  await waitForFeed(owner, 1, { providerRef: practice.provider });
  const world = {
    provider: practice.provider,
    user: practice.owner,
    staff,
    account: practice.account,
    timeslot: timeslot['reference'] as string,
    appointment,
    series: body[0]!.seriesId,
    participation,
    mail: mail!.id,
    hold,
    customer: practice.customer,
    resource: practice.resource,
    product: practice.product,
    erasure: erased.erasure.id,
    webhook: await requireWebhook(owner),
  };
  return { practice, world };
}

/** A CRM can have only 10. It is disabled, and has been tested. */
async function requireWebhook(owner: TestCrm): Promise<string> {
  const [existing] = (await owner.get<{ reference: string }[]>('/webhooks')).body;
  if (existing !== undefined) return existing.reference;
  const reference = newReference();
  const at = `/webhooks/${encodeURIComponent(reference)}`;
  expect(await owner.post('/webhooks', { reference, url: unreachable })).toMatchObject({ status: 201 });
  expect(await owner.put(at, { state: 'DISABLED' })).toMatchObject({ status: 200 });
  expect(await owner.post(`${at}/test`, undefined)).toMatchObject({ status: 202 });
  // Until it was disabled, events of the setup may have been sent, too.
  const isTested = async (): Promise<boolean> => (await owner.get<{ eventType: string }[]>(`${at}/attempts`)).body.some(({ eventType }) => eventType === 'webhook.test');
  await waitUntil(isTested, { what: 'the attempt', timeoutMs: 30_000 });
  return reference;
}

describe('every route', () => {
  it.each(operations)('%s has a case that lists all of its references', (operationId) => {
    const { existing, made = [], labels = [] } = cases[operationId]!;
    expect([...Object.keys(existing), ...made, ...labels].sort()).toEqual(documentedReferences(operationId).sort());
  });
});

const foreignReferences = operations.flatMap((operationId) =>
  Object.entries(cases[operationId]?.existing ?? {}).map(([where, kind]) => [operationId, where, kind] as const),
);

describe('a reference to a resource of someone else', () => {
  /** Nothing here may change it, so one snapshot before all of them is enough. */
  let before: Record<string, string[]>;
  beforeAll(async () => {
    before = await snapshot([crm, foreignCrm]);
  });

  it.each(foreignReferences)('%s treats a foreign %s (%s) like an absent one, without any effect', async (operationId, where, kind) => {
    const reference = await sendWith(operationId, own.world, { [where]: absent[kind] });
    const candidates = [foreign[kind], ...(ofCrm.has(kind) ? [] : [sibling[kind]])];
    for (const candidate of candidates) {
      const answer = await sendWith(operationId, own.world, { [where]: candidate });
      expect(visible(answer, candidate)).toEqual(visible(reference, absent[kind]));
    }
    expect(hidesOrRefuses(operationId, reference), `${reference.status} ${reference.text}`).toBe(true);
    expect(await snapshot([crm, foreignCrm])).toEqual(before);
  });

  it.each(operations)('%s treats references of another CRM, or of another provider of the same CRM, as absent', async (operationId) => {
    const references = cases[operationId]!.existing;
    if (Object.keys(references).length === 0) return;
    const others = (world: World, exceptProvider: boolean): Record<string, string> =>
      Object.fromEntries(Object.entries(references).flatMap(([where, kind]) => (exceptProvider && ofCrm.has(kind) ? [] : [[where, world[kind]]])));
    for (const [world, exceptProvider] of [
      [foreign, false],
      [sibling, true],
    ] as const) {
      if (exceptProvider && Object.values(references).every((kind) => ofCrm.has(kind))) continue;
      const answer = await sendWith(operationId, own.world, others(world, exceptProvider));
      const nothing = await sendWith(operationId, own.world, others(absent, exceptProvider));
      const masked = (each: Answer, of: World) => Object.values(of).reduce((text, reference) => text.replaceAll(reference, '…'), each.text);
      expect([answer.status, masked(answer, world)]).toEqual([nothing.status, masked(nothing, absent)]);
    }
    expect(await snapshot([crm, foreignCrm])).toEqual(before);
  });
});

const madeReferences = operations.flatMap((operationId) => (cases[operationId]?.made ?? []).map((where) => [operationId, where] as const));

describe('a reference that another CRM also uses', () => {
  it.each(madeReferences)('%s accepts as %s, without changing what exists there', async (operationId, where) => {
    const before = await snapshot([foreignCrm]);
    const caller = await createWorld(await createCrm({ sandbox: true }));
    for (const taken of Object.values(foreign).filter((reference) => reference.includes('@'))) {
      const { status, text, body } = await sendWith(operationId, caller.world, { [where]: taken }, caller.practice);
      expect(status, text).toBe(operationId === 'updateCustomer' ? 200 : 201);
      if (operationId === 'updateCustomer') caller.world.customer = (body as { customer: { customerReference: string } }).customer.customerReference;
      // There must be room for the next one.
      if (operationId === 'createWebhook') await caller.practice.crm.delete(`/webhooks/${encodeURIComponent(taken)}`);
    }
    expect(await snapshot([foreignCrm])).toEqual(before);
  });

  it.each(madeReferences.filter(([operationId]) => namedByProvider.has(operationId)))('%s accepts as %s from another provider', async (operationId, where) => {
    const practice = await createPractice(crm);
    const world = { ...own.world, provider: practice.provider, customer: practice.customer };
    const { status, text } = await sendWith(operationId, world, { [where]: sibling.customer }, practice);
    expect(status, text).toBe(operationId === 'updateCustomer' ? 200 : 201);
  });
});

describe('the caller’s own resources', () => {
  it.each(operations)('%s succeeds', async (operationId) => {
    const { practice, world } = await createWorld(crm);
    const { status, text } = await sendWith(operationId, world, {}, practice);
    expect([200, 201, 202, 204], text).toContain(status);
    if (operationId === 'getCustomer') expect(status).toBe(200);
    if (operationId.startsWith('list')) expect(text).not.toBe('[]');
  });
});

/** Sends the request of a case with some of its references replaced. */
function sendWith(operationId: string, world: World, replaced: Record<string, string>, practice: Practice = own.practice): Promise<Answer> {
  const { path, method } = document.places.find(({ operation }) => operation.operationId === operationId)!;
  const { request: usual, alternatives = {} } = cases[operationId]!;
  const request = (Object.keys(replaced).flatMap((where) => alternatives[where] ?? [])[0] ?? usual)(world, practice);
  dropAlternative(request, Object.keys(replaced));
  for (const [where, reference] of Object.entries(replaced)) replace(request, where, reference);
  const address = path.replace('/crms/{crmId}', '').replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(request.path[name]!));
  return practice.crm.send(method.toUpperCase(), address, request.body, { query: request.query, headers: { 'x-request-id': 'isolation' } });
}

/** A DELETE takes an argument from the body or the query, and an appointment or a series: only the place that is replaced is kept. */
function dropAlternative(request: Request, places: string[]): void {
  const argument = places.find((place) => /^(?:query|body)\.(?:appointmentReference|seriesId)$/.test(place));
  if (argument === undefined || request.query['appointmentReference'] === request.query['seriesId']) return;
  request.query = {};
  request.body = {};
}

function replace(request: Request, where: string, reference: string): void {
  const steps = where.split('.');
  const parent = steps.slice(0, -1).reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], request) as Record<string, unknown>;
  parent[steps.at(-1)!] = reference;
}

/** Everything that a caller can see of a response, byte for byte, with the request's own reference masked. */
function visible({ status, headers, text }: Answer, reference: string): unknown {
  const shown = [...headers].filter(([name]) => name !== 'date').map(([name, value]) => `${name}: ${value}`);
  return { status, headers: shown.sort(), text: text.replaceAll(reference, '…') };
}

function hidesOrRefuses(operationId: string, { status, text }: Answer): boolean {
  if (status === 404) return true;
  if (operationId === 'getCustomer') return status === 204;
  if (operationId.startsWith('list')) return status === 200 && text === '[]';
  // interface 4.4: the provider of the body must be that of the address.
  return operationId === 'createCustomer' && status === 400;
}

/** Every parameter and field of an operation that is a reference, judging by its name in the API document. */
function documentedReferences(operationId: string): string[] {
  const { operation } = document.places.find((place) => place.operation.operationId === operationId)!;
  const parameters = (operation.parameters ?? []).filter(({ name }) => name !== 'crmId' && isReferenceName(name)).map((parameter) => `${parameter.in}.${parameter.name}`);
  const schema = operation.requestBody?.content['application/json'].schema;
  return [...new Set([...parameters, ...referencesIn(schema, 'body')])];
}

function isReferenceName(name: string): boolean {
  return /(?:^ref|Ref)(?:erence)?$|Id$/.test(name) || name === 'reference';
}

interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

function referencesIn(schema: unknown, at: string): string[] {
  if (schema === undefined) return [];
  const { $ref, anyOf = [], properties = {}, items } = schema as Schema;
  if ($ref !== undefined) return referencesIn(document.document.components.schemas[$ref.split('/').at(-1)!], at);
  return [
    ...anyOf.flatMap((each) => referencesIn(each, at)),
    ...(items === undefined ? [] : referencesIn(items, `${at}.0`)),
    ...Object.entries(properties).flatMap(([name, property]) => (isReferenceName(name) ? [`${at}.${name}`] : referencesIn(property, `${at}.${name}`))),
  ];
}

/** All rows of some CRMs in the four databases, and all events about them. */
async function snapshot(crms: TestCrm[]): Promise<Record<string, string[]>> {
  const crmIds = crms.map(({ crmId }) => crmId);
  const entries = await Promise.all(databaseServices.map(async (service) => [service, await rowsOf(service, crmIds)] as const));
  return Object.fromEntries(entries);
}

async function rowsOf(service: DatabaseService, crmIds: string[]): Promise<string[]> {
  const statement = (statements[service] ??= await selectRows(service));
  return (await query<{ row: string }>(service, statement, [crmIds])).map(({ row }) => row);
}

/** The statement for each database, made once: to list the columns takes longer than to read the rows. */
const statements: Partial<Record<DatabaseService, string>> = {};

async function selectRows(service: DatabaseService): Promise<string> {
  const tables = await query<{ name: string }>(
    service,
    `SELECT c.table_name AS name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
      WHERE c.table_schema = 'public' AND c.column_name = 'crm_id' AND t.table_type = 'BASE TABLE' ORDER BY 1`,
  );
  // Every request updates when a key was last used.
  const rows = tables.map(
    ({ name }) => `SELECT '${name} ' || (to_jsonb(t) - 'last_used_at')::text AS row FROM "${name}" t WHERE crm_id = ANY ($1)`,
  );
  const events = `SELECT 'outbox ' || id || ' ' || type FROM outbox
                   WHERE EXISTS (SELECT FROM unnest($1::text[]) AS crm_id WHERE position(convert_to(crm_id, 'UTF8') IN payload) > 0)`;
  return `${[...rows, events].join(' UNION ALL ')} ORDER BY 1`;
}

/** Waits until the events of the setup have been processed everywhere. */
async function waitUntilQuiet(): Promise<void> {
  let last: unknown;
  await waitUntil(
    async () => {
      const [{ mails }] = (await query<{ mails: number }>('notification', `SELECT count(*)::int AS mails FROM mail WHERE crm_id = ANY ($1) AND state = 'sent'`, [
        [crm.crmId, foreignCrm.crmId],
      ])) as [{ mails: number }];
      const unsent = await Promise.all(databaseServices.map((service) => query(service, 'SELECT id FROM outbox WHERE sent_at IS NULL')));
      const lags = await Promise.all(consumingServices.map(readLag));
      const now = JSON.stringify(await snapshot([crm, foreignCrm]));
      const quiet = mails === 3 && unsent.every((rows) => rows.length === 0) && lags.every((lag) => lag === 0) && now === last;
      last = now;
      return quiet;
    },
    { what: 'the events of the setup to be dealt with', timeoutMs: 60_000, intervalMs: 500 },
  );
}

const consumingServices = ['calendar', 'customer', 'notification', 'webhook'] as const;

/** The number of events that a service has not processed yet. */
async function readLag(service: (typeof consumingServices)[number]): Promise<number | undefined> {
  const response = await fetch(`${inject('stack').operations[service]}/metrics`);
  return sumSamples(await response.text(), 'scheduling_consumer_lag_events');
}
