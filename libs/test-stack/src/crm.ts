import { randomBytes } from 'node:crypto';
import type { CreateCrmRequest } from '@scheduling/contracts/identity/v1';
import { createAdminClient } from '@scheduling/stack/admin-client';
import type { StackInfo } from '@scheduling/stack';
import { type Client, createClient, path } from './client.ts';
import { sharedStack } from './shared-stack.ts';

export interface TestCrm extends Client {
  crmId: string;
  key: string;
}

/** A text that is unique across all runs and files. */
export function unique(prefix: string): string {
  return `${prefix}-${randomBytes(6).toString('hex')}`;
}

/** Creates a CRM with a key. It has no rate limit unless the settings set one. */
export async function createCrm(
  settings: Partial<CreateCrmRequest> = {},
  stack: StackInfo = sharedStack(),
): Promise<TestCrm> {
  using admin = createAdminClient(stack.admin.identity);
  const crmId = unique('crm');
  await admin.createCrm({ crmId, requestsPerMinute: 0, ...settings });
  const { key } = await admin.createKey({ crmId });
  return { crmId, key, ...createClient(stack, crmId, key) };
}

/** What an integrator has after the setup, and what a booking requires. */
export interface Practice {
  crm: TestCrm;
  owner: string;
  account: string;
  provider: string;
  /** `/provider/<reference>` */
  at: string;
  resource: string;
  product: string;
  customer: string;
  customerEmail: string;
}

export async function createPractice(
  crm: TestCrm,
  settings: { timeZone?: string; language?: string; provider?: string } = {},
): Promise<Practice> {
  const name = unique('practice');
  const [owner, account, customer] = ['owner', 'account', 'customer'].map((kind) => `${kind}-${name}@test`) as [
    string,
    string,
    string,
  ];
  const provider = settings.provider ?? `provider-${name}@test`;
  const customerEmail = `${name}@customers.example`;
  const at = path`/provider/${provider}`;
  await expectCreated(
    crm.post('/user', {
      reference: owner,
      email: `owner-${name}@test.example`,
      username: `owner-${name}`,
      lastName: 'Owner',
    }),
  );
  await expectCreated(crm.post('/account', { ownerReference: owner, accountReference: account, branch: 'misc' }));
  await expectCreated(
    crm.post('/provider', {
      reference: provider,
      ownerReference: owner,
      accountReference: account,
      name: `Practice ${name}`,
      timeZone: settings.timeZone,
    }),
  );
  await expectCreated(
    crm.post(`${at}/customers`, {
      customerReference: customer,
      providerReference: provider,
      userName: 'Grace Hopper',
      email: customerEmail,
      language: settings.language ?? 'en',
    }),
  );
  return {
    crm,
    owner,
    account,
    provider,
    at,
    resource: `room-${name}@test`,
    product: `cut-${name}@test`,
    customer,
    customerEmail,
  };
}

/** The fields of a user that does not exist yet. */
export function newUser(fields: Record<string, unknown> = {}) {
  const name = unique('user');
  return { reference: `${name}@test`, email: `${name}@test.example`, username: name, lastName: 'Hopper', ...fields };
}

/** Creates an appointment of one hour on a day far in the future and returns its reference. */
export async function createAppointment(practice: Practice, fields: Record<string, unknown> = {}): Promise<string> {
  const reference = `${unique('appointment')}@test`;
  await expectCreated(
    practice.crm.post(`${practice.at}/appointments`, newAppointment(practice, { reference, ...fields })),
  );
  return reference;
}

export function newAppointment(
  { resource, product }: Practice,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    reference: `${unique('appointment')}@test`,
    start: '2031-03-03T09:00',
    end: '2031-03-03T10:00',
    capacity: 1,
    resourceReference: resource,
    productReference: product,
    productName: 'Haircut',
    ...fields,
  };
}

export function newTimeslot({ resource }: Practice, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    reference: `${unique('timeslot')}@test`,
    resourceReference: resource,
    start: '2031-03-03T08:00',
    end: '2031-03-03T12:00',
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'BOOKABLE',
    ...fields,
  };
}

/**
 * Creates a timeslot of four hours with a raster of half an hour on a day far in the future and returns its reference.
 */
export async function createTimeslot(practice: Practice, fields: Record<string, unknown> = {}): Promise<string> {
  const reference = `${unique('timeslot')}@test`;
  await expectCreated(
    practice.crm.post(`${practice.at}/timeslots`, { timeslots: [newTimeslot(practice, { reference, ...fields })] }),
  );
  return reference;
}

/** Books, unless the fields give another state, and returns the reference of the participation. */
export async function createParticipation(
  practice: Practice,
  appointmentReference: string,
  fields: Record<string, unknown> = {},
): Promise<string> {
  const reference = `${unique('participation')}@test`;
  await expectCreated(
    practice.crm.post(`${practice.at}/participations`, {
      reference,
      appointmentReference,
      customerReference: practice.customer,
      state: 'BOOKED',
      ...fields,
    }),
  );
  return reference;
}

export async function expectCreated(answer: ReturnType<Client['post']>): Promise<void> {
  const { status, text } = await answer;
  if (status !== 201) throw new Error(`expected 201, was ${status}: ${text}`);
}
