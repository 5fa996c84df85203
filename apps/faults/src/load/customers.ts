import { path } from './client.ts';
import { openDeadLinks } from './dead-links.ts';
import type { Customer, Tenant } from './model.ts';
import type { Worker } from './worker.ts';

export async function createCustomer(worker: Worker): Promise<void> {
  await createCustomerAs(worker, worker.provider.tenant.newReference('customer'));
}

/** With a reference that others may have had. Undefined if it was rejected. */
export async function createCustomerAs(worker: Worker, reference: string): Promise<Customer | undefined> {
  const { provider, journal } = worker;
  const { tenant } = provider;
  const person = tenant.newReference('person');
  const operation = journal.begin('create customer');
  const name = nameOf(tenant.mark, person, 0);
  const email = emailOf(tenant, person, 0);
  const customer: Customer = {
    provider,
    reference,
    person,
    created: operation,
    addresses: [{ email, operation }],
    names: [{ name, operation }],
    erased: undefined,
  };
  provider.customers.push(customer);
  const body = {
    customerReference: reference,
    providerReference: provider.reference,
    userName: name,
    email,
    note: `${name} note`,
  };
  await tenant.client.change(
    operation,
    { method: 'POST', path: `${provider.at}/customers`, body },
    { withKey: worker.random.chance(0.3) },
  );
  if (operation.outcome !== 'ok') return undefined;
  worker.customers.push(customer);
  return customer;
}

export async function renameCustomer(worker: Worker): Promise<void> {
  if (worker.customers.length === 0) return createCustomer(worker);
  const customer = worker.random.pick(worker.customers);
  const { provider, reference, person, names } = customer;
  const operation = worker.journal.begin('change customer');
  const name = nameOf(provider.tenant.mark, person, names.length);
  names.push({ name, operation });
  await provider.tenant.client.change(operation, {
    method: 'PUT',
    path: provider.at + path`/customers/${reference}`,
    body: { userName: name },
  });
}

export async function eraseCustomer(worker: Worker): Promise<void> {
  if (worker.customers.length < 3) return createCustomer(worker);
  await eraseOne(worker);
}

/** One who has booked, if there is one: of them, all services know something. Nobody uses the customer from now on. */
export async function eraseOne(worker: Worker): Promise<void> {
  const booked = worker.customers.filter((each) => worker.participations.some(({ customer }) => customer === each));
  const customer = worker.random.pick(booked.length > 0 ? booked : worker.customers);
  worker.customers = worker.customers.filter((each) => each !== customer);
  const own = worker.participations.filter((each) => each.customer === customer);
  worker.participations = worker.participations.filter((each) => each.customer !== customer);
  const { provider, reference } = customer;
  customer.erased = worker.journal.begin('erase customer');
  const request = {
    method: 'DELETE',
    path: provider.at + path`/customers/${reference}`,
    query: { ignoreFutureAppointments: true },
  } as const;
  await provider.tenant.client.change(customer.erased, request, { goneStatus: 404 });
  await openDeadLinks(worker, own);
}

/** The name by which a person is searched for after the erasure. */
function nameOf(mark: string, person: string, change: number): string {
  return `${mark} person-${numberOf(person)}-of-${mark} ${change}`;
}

/** The person's mark: in the name and in the address, and nowhere else. */
export function personMark(mark: string, person: string): string {
  return `person-${numberOf(person)}-of-${mark}`.toLowerCase();
}

/** All addresses of a person have the mark in front of the first dot. */
export function emailOf({ mark }: Tenant, person: string, change: number): string {
  return `${personMark(mark, person)}.${change}@${mark.toLowerCase()}.example`;
}

function numberOf(person: string): string {
  return /\d+/.exec(person)![0];
}
