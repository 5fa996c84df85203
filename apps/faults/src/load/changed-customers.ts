import { openAppointments } from './appointments.ts';
import { path } from './client.ts';
import { createCustomer, createCustomerAs, emailOf } from './customers.ts';
import { openDeadLinks } from './dead-links.ts';
import { take } from './participations.ts';
import type { Worker } from './worker.ts';

/** And mostly books for the customer, who gets a mail to the new address. */
export async function changeAddress(worker: Worker): Promise<void> {
  if (worker.customers.length === 0) return createCustomer(worker);
  const customer = worker.random.pick(worker.customers);
  const { provider, reference, person, addresses } = customer;
  const operation = worker.journal.begin('change address');
  const email = emailOf(provider.tenant, person, addresses.length);
  addresses.push({ email, operation });
  await provider.tenant.client.change(operation, {
    method: 'PUT',
    path: provider.at + path`/customers/${reference}`,
    body: { email },
  });
  const own = worker.participations.filter((each) => each.customer === customer);
  await openDeadLinks(worker, own);
  const appointment = openAppointments(provider).at(-1);
  if (appointment !== undefined && worker.random.chance(0.7)) await take(worker, appointment, { customer });
}

/**
 * Mostly to a reference that others have had, and then somebody else gets the one that is free now, and books. So
 * references are reused, and go around.
 */
export async function changeReference(worker: Worker): Promise<void> {
  if (worker.customers.length === 0) return createCustomer(worker);
  const { provider, random, freeReferences } = worker;
  const { tenant } = provider;
  const customer = random.pick(worker.customers);
  const before = customer.reference;
  const reference = (random.chance(0.7) ? freeReferences.shift() : undefined) ?? tenant.newReference('customer');
  const operation = worker.journal.begin('change reference');
  const request = {
    method: 'PUT',
    path: provider.at + path`/customers/${before}`,
    body: { customerReference: reference },
  } as const;
  await tenant.client.change(operation, request, { goneStatus: 404 });
  if (operation.outcome !== 'ok') return;
  customer.reference = reference;
  // An attempt that was not answered would rename whoever has the reference by then, if it were late.
  if (operation.unknowns > 0) return;
  if (random.chance(0.3)) return void freeReferences.push(before);
  const other = await createCustomerAs(worker, before);
  const appointment = openAppointments(provider).at(-1);
  if (other !== undefined && appointment !== undefined) await take(worker, appointment, { customer: other });
}
