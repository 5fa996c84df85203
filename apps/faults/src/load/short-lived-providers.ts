import { ProviderErasureServiceService } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { createClient } from '@scheduling/rpc';
import { host } from '@scheduling/stack';
import { createRandom, type Random } from '@scheduling/testing/random';
import { setTimeout as delay } from 'node:timers/promises';
import type { System } from '../system/start-system.ts';
import { firstDayMs, timeOf } from './appointments.ts';
import { type Answer, type CrmClient, path, type Request } from './client.ts';
import { personMark } from './customers.ts';
import type { Journal, Operation } from './journal.ts';
import { type Attempt, effectMs, repeatUntilKnown } from './repeat-until-known.ts';
import type { Pause } from './run-load.ts';

/**
 * A CRM whose providers are created, used, emptied and deleted with their accounts, or erased by an operator, and then
 * created again with the same references. It is a sandbox, so that the texts of mails stay until they are erased.
 */
export interface PassingCrm {
  crmId: string;
  client: CrmClient;
  /** A word that is in every text of this CRM, and in none of the others. */
  mark: string;
  owner: string;
  system: System;
  journal: Journal;
  /** When the clients give up. */
  ended: AbortSignal;
  /** How many names it has used. */
  made: number;
  /** How many webhooks it has created. */
  webhooks: number;
  /** Those that providers have had, and their accounts, too. Deleted: there is certainly none at the moment. */
  references: Map<string, 'used' | 'deleted'>;
}

/** A client of it, which does one thing after the other with providers that nobody else uses. */
interface Client {
  crm: PassingCrm;
  random: Random;
  reference: string;
  /** Whether a deletion of this provider may still have an effect that was not answered. */
  isUncertain: boolean;
}

/** Of the random numbers. */
const firstStream = 2_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** When there were appointments that are over. */
const pastMs = Date.UTC(2021, 2, 1);
const hall = 'hall@load';
const chair = 'chair@load';
/**
 * Only the first providers have one: a CRM can have no more at a time, and those of deleted providers are deleted a
 * little later.
 */
const mostWebhooks = 10;
/** How long an impatient client waits for the answer to a deletion: some of its parts are done by then, or none. */
const impatientMs = 60;

/** Until the signal aborts. Then everything is deleted, so that nothing may be left of anybody. */
export async function runShortLivedProviders(
  crm: PassingCrm,
  { seed, clients, pause }: { seed: number; clients: number; pause: Pause },
  until: AbortSignal,
): Promise<void> {
  const randoms = Array.from({ length: clients }, (_, index) => createRandom(seed, firstStream + index));
  await Promise.all(
    randoms.map(async (random) => {
      const client: Client = { crm, random, reference: newReference(crm, 'passing'), isUncertain: false };
      while (!until.aborted) {
        const startedMs = performance.now();
        await live(client);
        await delay(pause(random, performance.now() - startedMs));
      }
    }),
  );
  // What was not answered has no effect any more.
  await delay(effectMs);
  const random = createRandom(seed, firstStream + clients);
  await Promise.all(
    [...crm.references.keys()].map((reference) => liveOnceMore({ crm, random, reference, isUncertain: false })),
  );
}

/** One life of a provider and its account. If it is not certain that it is over, the next one has another reference. */
async function live(client: Client): Promise<void> {
  await liveAndDie(client);
  if (!client.isUncertain) return;
  client.reference = newReference(client.crm, 'passing');
  client.isUncertain = false;
}

async function liveAndDie(client: Client): Promise<void> {
  const { random } = client;
  if (!(await create(client))) return;
  await use(client);
  if (random.chance(0.3)) return eraseByOperator(client);
  await empty(client);
  if (random.chance(0.3)) await rush(client);
  if (random.chance(0.4)) {
    await deleteImpatiently(client);
    // It is left as it is until the end.
    if (random.chance(0.5)) return;
  }
  await deleteAll(client);
}

/** Whatever became of the provider: it can be used as it is, or created again, and then deleted. */
async function liveOnceMore(client: Client): Promise<void> {
  if (!(await create(client))) return;
  await use(client);
  await empty(client);
  await deleteAll(client);
}

/** Those that exist are found, and not changed. */
async function create(client: Client): Promise<boolean> {
  const { crm, reference } = client;
  const account = { accountReference: reference, ownerReference: crm.owner, branch: 'misc' };
  const person = newPerson(crm);
  const provider = { ...account, reference, ...person, name: `${crm.mark} ${person.name}` };
  const wasDeleted = crm.references.get(reference) === 'deleted';
  crm.references.set(reference, 'used');
  for (const [kind, to, body] of [
    ['create account', '/account', account],
    ['create provider', '/provider', provider],
  ] as const) {
    const operation = await change(client, kind, { method: 'POST', path: to, body });
    if (operation.outcome !== 'ok') return false;
    if (wasDeleted && operation.unknowns === 0 && operation.answer.startsWith('200'))
      surprise(client, `to ${kind} found one that had been deleted`);
  }
  return true;
}

/** Stores something of the provider in every table that can have it. */
async function use(client: Client): Promise<void> {
  const { crm, random } = client;
  const at = pathOf(client);
  const customerReference = newReference(crm, 'customer');
  const reference = newReference(crm, 'timeslot');
  const [start, end] = [timeOf(firstDayMs), timeOf(firstDayMs + 8 * hourMs)];
  const timeslot = { reference, resourceReference: chair, start, end, raster: 60, state: 'BOOKABLE' };
  const capacity = { defaultCapacity: 1, defaultAcceptBookings: true };
  const window = { weekdays: ['1'], from: '08:00', to: '12:00', raster: 60, ...capacity };
  const appointment = newReference(crm, 'appointment');
  const requests: [string, Request][] = [
    ['set rules', { method: 'PUT', path: `${at}/booking-rules`, body: { selfService: true } }],
    [
      'set hours',
      { method: 'PUT', path: at + path`/resource/${hall}/hours`, body: { weekly: [window], aheadDays: 60 } },
    ],
    [
      'create timeslot',
      { method: 'POST', path: `${at}/timeslots`, body: { timeslots: [{ ...timeslot, ...capacity }] } },
    ],
    ['create block', { method: 'POST', path: at + path`/resource/${hall}/blocks`, body: { reference, start, end } }],
    ['create customer', { method: 'POST', path: `${at}/customers`, body: newCustomer(client, customerReference) }],
    ['create series', { method: 'POST', path: `${at}/appointments`, body: newSeries(crm) }],
    ['create appointment', { method: 'POST', path: `${at}/appointments`, body: newAppointment(crm, appointment) }],
    [
      'book slot',
      { method: 'POST', path: `${at}/bookings`, body: newBooking(crm, { reference, start, customerReference }) },
    ],
    // Those who take part are told, as is the provider.
    [
      'update appointment',
      { method: 'PUT', path: at + path`/appointments/${appointment}`, body: { description: crm.mark } },
    ],
  ];
  if (crm.webhooks < mostWebhooks) {
    crm.webhooks += 1;
    const webhook = {
      reference: newReference(crm, 'webhook'),
      url: 'http://127.0.0.1:1/',
      providerReference: client.reference,
    };
    requests.push(['create webhook', { method: 'POST', path: '/webhooks', body: webhook }]);
  }
  for (const [kind, request] of requests) if ((await change(client, kind, request)).outcome !== 'ok') return;
  if (random.chance(0.5)) {
    const body = { appointmentReference: appointment };
    await change(client, 'cancel appointment', { method: 'DELETE', path: `${at}/appointments`, body });
  }
}

function newCustomer({ crm, reference }: Client, customerReference: string): Record<string, unknown> {
  const { name: userName, email } = newPerson(crm);
  return { customerReference, providerReference: reference, userName, email, note: userName };
}

/** It is over, so it is nothing that an operator must not erase. */
function newSeries({ mark }: PassingCrm): Record<string, unknown> {
  const series = { from: timeOf(pastMs), to: timeOf(pastMs + 3 * hourMs), raster: 60 };
  return { series_data: series, capacity: 1, resourceReference: hall, productReference: `${mark}@load` };
}

function newAppointment(crm: PassingCrm, reference: string): Record<string, unknown> {
  const participation = { reference: newReference(crm, 'embedded'), ...newPerson(crm), state: 'BOOKED' };
  return {
    reference,
    start: timeOf(firstDayMs),
    end: timeOf(firstDayMs + hourMs),
    resourceReference: hall,
    productReference: `${crm.mark}@load`,
    participations: [participation],
  };
}

function newBooking(
  crm: PassingCrm,
  { reference: timeslotReference, ...slot }: { reference: string; start: string; customerReference: string },
): Record<string, unknown> {
  const reference = newReference(crm, 'booking');
  return { reference, timeslotReference, ...slot, productReference: `${crm.mark}@load`, state: 'BOOKED' };
}

/** Deletes what the CRM has to delete before the provider. */
async function empty(client: Client): Promise<void> {
  const at = pathOf(client);
  await deleteAppointments(client, pastMs);
  await change(client, 'delete hours', { method: 'DELETE', path: at + path`/resource/${hall}/hours` });
  for (const [kind, list] of [
    ['timeslot', at + path`/resource/${chair}/timeslots`],
    ['block', at + path`/resource/${hall}/blocks`],
  ] as const) {
    const period = { from: timeOf(firstDayMs), to: timeOf(firstDayMs + dayMs) };
    for (const { reference } of await readAll<{ reference: string }>(client, list, period)) {
      const to = kind === 'block' ? list : `${at}/timeslots`;
      await remove(client, `delete ${kind}`, to + path`/${reference}`);
    }
  }
  await deleteCustomers(client);
}

/** Those that end after a moment, also if it is long ago. */
async function deleteAppointments(client: Client, fromMs: number): Promise<void> {
  const at = pathOf(client);
  const query = { from: timeOf(fromMs), to: timeOf(firstDayMs + dayMs), includeArchived: true };
  for (const { reference } of await readAll<{ reference: string }>(client, `${at}/appointments`, query)) {
    const query = { appointmentReference: reference };
    await remove(client, 'delete appointment', `${at}/appointments/withoutNotification`, query);
  }
}

async function deleteCustomers(client: Client): Promise<void> {
  const at = `${pathOf(client)}/customers`;
  for (const { customerReference } of await readAll<{ customerReference: string }>(client, at))
    await remove(client, 'erase customer', at + path`/${customerReference}`, { ignoreFutureAppointments: true });
}

/** A customer is created while the provider is deleted: one of the two is possible, and only one. */
async function rush(client: Client): Promise<void> {
  const { crm } = client;
  const body = newCustomer(client, newReference(crm, 'customer'));
  const create = begin(client, 'create customer');
  const deletion = begin(client, 'delete provider');
  await Promise.all([
    crm.client.change(create, { method: 'POST', path: `${pathOf(client)}/customers`, body }),
    crm.client.change(deletion, { method: 'DELETE', path: pathOf(client) }, { goneStatus: 404 }),
  ]);
  if (create.outcome !== undefined && create.outcome === deletion.outcome)
    surprise(
      client,
      `a deletion was answered with ${deletion.answer}, and a customer at the same time with ${create.answer}`,
    );
  client.isUncertain ||= deletion.outcome === 'ok' || deletion.unknowns > 0;
  if (create.outcome === 'ok') await deleteCustomers(client);
}

/** Does not wait for the answer for long, and so does not know what has become of the provider. */
async function deleteImpatiently(client: Client): Promise<void> {
  client.isUncertain = true;
  const answerMs = client.random.integer(1, impatientMs);
  await client.crm.client.send({ method: 'DELETE', path: pathOf(client), answerMs });
}

async function deleteAll(client: Client): Promise<void> {
  await remove(client, 'delete provider', pathOf(client));
  await requireGone(client, pathOf(client));
  await deleteAccount(client);
}

async function deleteAccount(client: Client): Promise<void> {
  const { crm, reference } = client;
  const at = path`/account/${reference}`;
  await remove(client, 'delete account', at);
  if ((await requireGone(client, at)) && !client.isUncertain) crm.references.set(reference, 'deleted');
}

/** What has been deleted is not there, for nobody creates it meanwhile. */
async function requireGone(client: Client, at: string): Promise<boolean> {
  if (client.crm.ended.aborted) return false;
  const { status } = await client.crm.client.read(at, {}, [200, 404]);
  if (status !== 404) surprise(client, `${at} is there after its deletion`);
  return status === 404;
}

/** With the appointments of the past. */
async function eraseByOperator(client: Client): Promise<void> {
  const { crm, reference } = client;
  const { crmId, system, journal, ended } = crm;
  await deleteAppointments(client, Date.now());
  await deleteCustomers(client);
  const operation = begin(client, 'erase provider');
  const attempt = async (): Promise<Attempt> => {
    const pauseMs = 100;
    const [replica] = system.groups.calendar.ready;
    if (replica === undefined) return { outcome: undefined, answer: 'nobody answers', pauseMs };
    using erasures = createClient(ProviderErasureServiceService, 'calendar', `${host}:${replica.ports.admin}`);
    try {
      while (!(await erasures.eraseProvider({ crmId, reference })).deleted);
      return { outcome: 'ok', answer: 'erased', pauseMs };
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const outcome = error.category === 'unavailable' ? undefined : 'failed';
      return { outcome, isGone: error.category === 'not_found', answer: error.code, pauseMs };
    }
  };
  await repeatUntilKnown(operation, attempt, { journal, ended });
  client.isUncertain ||= operation.unknowns > 0;
  requireSuccess(client, operation);
  if (operation.outcome !== 'ok') return;
  await requireGone(client, pathOf(client));
  await deleteAccount(client);
}

async function readAll<Item>({ crm }: Client, at: string, query?: Request['query']): Promise<Item[]> {
  const { status, body } = await crm.client.read(at, query, [200, 404]);
  // Somebody who did not wait for the answer has deleted the provider.
  return status === 404 ? [] : (body as Item[]);
}

/** Deletes something, which may be gone if somebody did not wait for the answer to a deletion. */
async function remove(client: Client, kind: string, at: string, query?: Request['query']): Promise<void> {
  const operation = begin(client, kind);
  const request = { method: 'DELETE', path: at, ...(query && { query }) } as const;
  const answer = await client.crm.client.change(operation, request, { goneStatus: 404 });
  if (!(client.isUncertain && answer?.status === 404)) requireSuccess(client, operation, answer);
  client.isUncertain ||= operation.unknowns > 0;
}

async function change(client: Client, kind: string, request: Request): Promise<Operation> {
  const operation = begin(client, kind);
  const answer = await client.crm.client.change(operation, request, { withKey: request.method === 'POST' });
  requireSuccess(client, operation, answer);
  return operation;
}

function begin({ crm }: Client, kind: string): Operation {
  return crm.journal.begin(kind);
}

function requireSuccess(client: Client, { outcome, kind, answer }: Operation, last?: Answer): void {
  if (outcome === 'failed') surprise(client, `to ${kind} was answered with ${last?.text ?? answer}`);
}

function surprise({ crm, reference }: Client, text: string): void {
  crm.journal.surprises.push(`I21 ${reference} of ${crm.crmId}: ${text}`);
}

function pathOf({ reference }: Pick<Client, 'reference'>): string {
  return path`/provider/${reference}`;
}

function newReference(crm: PassingCrm, kind: string): string {
  return `${kind}-${(crm.made += 1)}@load`;
}

function newPerson(crm: PassingCrm): { name: string; email: string } {
  const person = personMark(crm.mark, newReference(crm, 'person'));
  return { name: person, email: `${person}@${crm.mark.toLowerCase()}.example` };
}
