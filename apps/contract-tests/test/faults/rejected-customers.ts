import { waitUntil } from '@scheduling/embedded';
import type { Service } from '@scheduling/stack';
import { eventually } from '@scheduling/testing';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, path, untilServed } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  createTimeslot,
  type Practice,
  unique,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { type FeedEvent, readFeed } from '../feed.ts';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { kill, whileHanging } from './processes.ts';
import { stackForFaults } from './stack-with-faults.ts';

/** How many rounds each test of chance has. */
const rounds = Number(process.env['REJECTED_ROUNDS'] ?? 5);
const clients = 20;
const timeLimit = { timeout: 60_000 + rounds * 20_000 };
const healMs = 60_000;

let stack: TestStack;
beforeAll(async () => void (stack = await stackForFaults()), 400_000);

/** A CRM of its own, so that its feed has nothing else. */
async function startPractice(): Promise<Practice> {
  return createPractice(await createCrm({}, stack.info));
}

interface Person {
  customerReference: string;
  userName: string;
}

interface BookedPerson {
  booking: { participation: { customerReference: string; name: string } };
}

const newPerson = (customerReference = `${unique('customer')}@test`): Person => ({
  customerReference,
  userName: unique('Person'),
});

/** Sends the same request until it is answered with anything but 503, as clients do. */
function book({ crm, at }: Practice, place: object, customer: Person): Promise<Answer<BookedPerson>> {
  const body = { reference: `${unique('booking')}@test`, ...place, customer, state: 'BOOKED' };
  return untilServed(() => crm.post<BookedPerson>(`${at}/bookings`, body, { query: { sendMails: false } }));
}

const isDone = ({ status }: Answer): boolean => status === 200 || status === 201;

const readCustomer = ({ crm, at }: Practice, reference: string) =>
  untilServed(() => crm.get<{ customer: Person }>(at + path`/customers/${reference}`));

/** The customers that were not created with the practice. */
async function listCustomers({ crm, at, customer }: Practice): Promise<string[]> {
  const { body } = await untilServed(() => crm.get<Person[]>(`${at}/customers`));
  return body.map(({ customerReference }) => customerReference).filter((reference) => reference !== customer);
}

/** Of which there are rows, whether or not they are shown. */
async function storedCustomers({ crm, customer }: Practice): Promise<string[]> {
  const rows = await query<{ reference: string }>(
    'customer',
    'SELECT reference FROM customer WHERE crm_id = $1 AND reference <> $2',
    [crm.crmId, customer],
    stack.info,
  );
  return rows.map(({ reference }) => reference);
}

/** The customer service decides about provisional customers now, and not after a minute. */
async function makeDue({ crm }: Practice): Promise<void> {
  await query(
    'customer',
    'UPDATE customer SET provisional_until = now() WHERE crm_id = $1 AND provisional_until IS NOT NULL',
    [crm.crmId],
    stack.info,
  );
}

const sorted = (references: string[]): string[] => references.toSorted();

/** The events of customers, once all of these bookings are in the feed, which come after those of their customers. */
async function customerEvents({ crm, customer }: Practice, bookings: number): Promise<FeedEvent[]> {
  const events = await waitUntil(
    async () => {
      const feed = await readFeed(crm);
      return (
        feed.filter(({ type, data }) => type === 'participation.created' && data.customerReference !== null).length >=
          bookings && feed
      );
    },
    { what: `${bookings} bookings in the feed`, timeoutMs: healMs },
  );
  return events.filter(({ type, data }) => type.startsWith('customer.') && data.reference !== customer);
}

/** Exactly these customers exist, and nothing is left of others. */
async function expectOnly(practice: Practice, people: Person[], bookings = people.length): Promise<void> {
  const references = sorted(people.map(({ customerReference }) => customerReference));
  for (const { customerReference, userName } of people)
    expect((await readCustomer(practice, customerReference)).body).toMatchObject({ customer: { userName } });
  await eventually(async () => expect(sorted(await listCustomers(practice))).toEqual(references));
  await eventually(async () => expect(sorted(await storedCustomers(practice))).toEqual(references));
  const events = await customerEvents(practice, bookings);
  expect(events.map(({ type }) => type)).toEqual(people.map(() => 'customer.created'));
  expect(sorted(events.map(({ data }) => data.reference!))).toEqual(references);
}

describe(`${clients} people who want one place at once`, timeLimit, () => {
  it.each([
    [
      'of an appointment',
      async (practice: Practice) => ({
        appointmentReference: await createAppointment(practice, { acceptBookings: true }),
      }),
    ],
    [
      'of a timeslot',
      async (practice: Practice) => ({
        timeslotReference: await createTimeslot(practice, { resourceReference: `${unique('room')}@test` }),
        start: '2031-03-03T09:00',
        productReference: practice.product,
      }),
    ],
  ])('%s: whoever is rejected is no customer', async (_name, createPlace) => {
    const winners: Person[] = [];
    const practice = await startPractice();
    for (let round = 0; round < rounds; round += 1) {
      const place = await createPlace(practice);
      const people = Array.from({ length: clients }, () => newPerson());
      const answers = await Promise.all(people.map((person) => book(practice, place, person)));
      const booked = people.filter((_person, index) => isDone(answers[index]!));
      expect(booked).toHaveLength(1);
      expect(answers.filter((answer) => !isDone(answer)).map(({ status }) => status)).toEqual(
        Array.from({ length: clients - 1 }, () => 409),
      );
      for (const person of people)
        expect((await readCustomer(practice, person.customerReference)).status).toBe(person === booked[0] ? 200 : 204);
      winners.push(...booked);
    }
    await expectOnly(practice, winners);
  });

  it('that somebody holds: whoever does not get it is no customer', async () => {
    const winners: Person[] = [];
    const practice = await startPractice();
    const { crm, at } = practice;
    for (let round = 0; round < rounds; round += 1) {
      const appointmentReference = await createAppointment(practice, { acceptBookings: true });
      const reference = `${unique('hold')}@test`;
      await crm.post(`${at}/bookings`, { reference, appointmentReference, state: 'RESERVED' });
      const people = Array.from({ length: clients }, () => newPerson());
      const confirm = (customer: Person) =>
        untilServed(() =>
          crm.post(at + path`/bookings/${reference}`, { state: 'BOOKED', customer }, { query: { sendMails: false } }),
        );
      const answers = await Promise.all(people.map(confirm));
      const booked = people.filter((_person, index) => isDone(answers[index]!));
      expect(booked).toHaveLength(1);
      for (const person of people)
        expect((await readCustomer(practice, person.customerReference)).status).toBe(person === booked[0] ? 200 : 204);
      winners.push(...booked);
    }
    await expectOnly(practice, winners, 0);
  });
});

/** What the answers said about one reference. */
interface Answered {
  /** The names that bookings, and requests to create the customer, were answered with. */
  names: string[];
  /** What they were sent with. */
  sent: string[];
}

/**
 * Bookings of a few places with a few customers, whom others create, read and change at the same moment. A customer
 * exists exactly if a request that brought it was successful, and everybody is told of the same one.
 */
class Rivals {
  readonly wrong: string[] = [];
  readonly #answered = new Map<string, Answered>();
  readonly practice: Practice;
  bookings = 0;

  constructor(practice: Practice) {
    this.practice = practice;
  }

  async round(): Promise<void> {
    const appointmentReference = await untilCreated(() =>
      createAppointment(this.practice, { capacity: 2, acceptBookings: true }),
    );
    const people = Array.from({ length: 3 }, () => newPerson());
    for (const { customerReference } of people) this.#answered.set(customerReference, { names: [], sent: [] });
    await Promise.all(Array.from({ length: 12 }, () => this.#act(appointmentReference, pick(people))));
  }

  /** The people who exist, by what was answered. */
  async check(): Promise<Person[]> {
    const existing = [...this.#answered].filter(([, { names }]) => names.length > 0);
    for (const [reference, { names, sent }] of this.#answered) {
      const { status, body } = await readCustomer(this.practice, reference);
      if (names.length === 0 && status !== 204)
        this.wrong.push(`${reference} exists: ${status}, ${JSON.stringify(body)}`);
      if (names.length === 0) continue;
      if (new Set(names).size > 1) this.wrong.push(`${reference} was answered as ${names.join(', ')}`);
      if (body?.customer.userName !== names[0])
        this.wrong.push(`${reference} is ${body?.customer.userName}, not ${names[0]}`);
      if (!sent.includes(names[0]!))
        this.wrong.push(`${reference} is ${names[0]}, whom nobody sent who was successful`);
    }
    return existing.map(([customerReference, { names }]) => ({ customerReference, userName: names[0]! }));
  }

  async #act(appointmentReference: string, person: Person): Promise<void> {
    const { crm, at, provider } = this.practice;
    const sent = Math.random() < 0.5 ? person : newPerson(person.customerReference);
    const action = Math.random();
    if (action < 0.6) {
      const answer = await book(this.practice, { appointmentReference }, sent);
      if (isDone(answer)) this.#note(sent, answer.body.booking.participation.name);
      else if (answer.status !== 409) this.wrong.push(`the booking was answered with ${answer.status} ${answer.text}`);
      if (isDone(answer)) this.bookings += 1;
    } else if (action < 0.7) {
      const { status, body, text } = await untilServed(() =>
        crm.post<{ customer: Person }>(`${at}/customers`, { ...sent, providerReference: provider }),
      );
      if (status === 200 || status === 201) this.#note(sent, body.customer.userName);
      else this.wrong.push(`the creation was answered with ${status} ${text}`);
    } else {
      await readCustomer(this.practice, person.customerReference);
    }
  }

  #note({ customerReference, userName }: Person, name: string): void {
    const { names, sent } = this.#answered.get(customerReference)!;
    names.push(name);
    sent.push(userName);
  }
}

function pick<T>(values: readonly T[]): T {
  return values[Math.floor(Math.random() * values.length)]!;
}

/** While a service is restarting, what it should create is not created. */
function untilCreated(create: () => Promise<string>): Promise<string> {
  return waitUntil(create, { what: 'a place', timeoutMs: healMs });
}

describe('customers whom several requests bring', timeLimit, () => {
  it('exist if one of them is successful', async () => {
    const rivals = new Rivals(await startPractice());
    for (let round = 0; round < rounds; round += 1) await rivals.round();
    const people = await rivals.check();
    expect(rivals.wrong).toEqual([]);
    await makeDue(rivals.practice);
    await expectOnly(rivals.practice, people, rivals.bookings);
  });

  it('do so while the services are killed in between', async () => {
    const rivals = new Rivals(await startPractice());
    const victims: Service[] = ['calendar', 'customer'];
    for (let round = 0; round < rounds; round += 1) {
      const killing = delay(Math.random() * 150).then(() => kill(stack, victims[round % victims.length]!));
      await rivals.round();
      await killing;
    }
    const people = await rivals.check();
    expect(rivals.wrong).toEqual([]);
    await makeDue(rivals.practice);
    await expectOnly(rivals.practice, people, rivals.bookings);
  });

  it.each(['calendar', 'customer'] as const)('cause no deadlock in %s', async (service) => {
    const [row] = await query<{ deadlocks: string }>(
      service,
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      [],
      stack.info,
    );
    expect(Number(row!.deadlocks)).toBe(0);
  });
});

interface Blockade {
  /** Waits until a booking is blocked. */
  blocked: () => Promise<void>;
  /** The booking goes on. */
  release: () => Promise<void>;
  /** The booking is rolled back: Postgres ends its session, as it does some time after the process has. */
  end: () => Promise<void>;
}

/** Blocks a booking at the moment when the customer that it brings has been prepared. */
async function withBlockedCopies(work: (blockade: Blockade) => Promise<void>): Promise<void> {
  const holder = new Client({ connectionString: stack.info.databases.calendar });
  await holder.connect();
  try {
    await holder.query('BEGIN');
    const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    // Rows may be read and locked, but not inserted.
    await holder.query('LOCK TABLE customer IN SHARE MODE');
    // The copy of a customer who was created before may still have to wait, too.
    const ofWaiting = (result: string) =>
      query(
        'calendar',
        `SELECT ${result} FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)) AND query LIKE '%book_slot%'`,
        [rows[0]!.pid],
        stack.info,
      );
    await work({
      blocked: async () =>
        void (await waitUntil(async () => (await ofWaiting('pid')).length > 0, {
          what: 'the booking to wait',
          timeoutMs: 5_000,
          intervalMs: 5,
        })),
      release: async () => void (await holder.query('COMMIT')),
      end: async () => void (await ofWaiting('pg_terminate_backend(pid, 5000)')),
    });
  } finally {
    await holder.end();
  }
}

/** Calendar is killed when it has made a booking, for somebody whom it brings, and has not answered yet. */
async function loseAnswer(): Promise<{ practice: Practice; person: Person }> {
  const practice = await startPractice();
  const { crm, at } = practice;
  const person = newPerson();
  const appointmentReference = await untilCreated(() => createAppointment(practice, { acceptBookings: true }));
  const reference = `${unique('booking')}@test`;
  await withBlockedCopies(async ({ blocked, release }) => {
    const lost = crm.post(`${at}/bookings`, { reference, appointmentReference, customer: person, state: 'BOOKED' });
    await blocked();
    await whileHanging(stack, 'customer', async () => {
      await release();
      await waitUntil(
        async () =>
          (await query('calendar', 'SELECT FROM participation WHERE reference = $1', [reference], stack.info)).length >
          0,
        { what: 'the booking', timeoutMs: 5_000, intervalMs: 5 },
      );
      await kill(stack, 'calendar');
      expect((await lost).status).toBe(503);
      // Nobody can have been told yet that it is decided.
      expect(
        await query(
          'customer',
          'SELECT version FROM customer WHERE crm_id = $1 AND reference = $2',
          [crm.crmId, person.customerReference],
          stack.info,
        ),
      ).toEqual([{ version: 0 }]);
    });
  });
  return { practice, person };
}

describe('a process that is killed', timeLimit, () => {
  it('before the booking leaves nobody', async () => {
    const practice = await startPractice();
    const { crm, at } = practice;
    const person = newPerson();
    const appointmentReference = await untilCreated(() => createAppointment(practice, { acceptBookings: true }));
    await withBlockedCopies(async ({ blocked, end }) => {
      const lost = crm.post(`${at}/bookings`, {
        reference: `${unique('booking')}@test`,
        appointmentReference,
        customer: person,
        state: 'BOOKED',
      });
      await blocked();
      await kill(stack, 'calendar');
      await end();
      expect((await lost).status).toBe(503);
    });
    expect(await storedCustomers(practice)).toEqual([person.customerReference]);
    expect((await readCustomer(practice, person.customerReference)).status).toBe(204);
    expect(await listCustomers(practice)).toEqual([]);
    expect(
      (
        await crm.post(`${at}/bookings`, {
          reference: `${unique('booking')}@test`,
          appointmentReference,
          customerReference: person.customerReference,
          state: 'BOOKED',
        })
      ).status,
    ).toBe(404);
    await makeDue(practice);
    await eventually(async () => expect(await storedCustomers(practice)).toEqual([]));
    await expectOnly(practice, []);
  });

  it('after the booking leaves the customer, whom everybody sees from then on', async () => {
    // Calendar waits for the customer service for half a second only: on a busy machine it answers before it is killed.
    const { practice, person } = await eventually(loseAnswer);
    const { crm, at } = practice;
    const other = {
      reference: `${unique('booking')}@test`,
      appointmentReference: await untilCreated(() => createAppointment(practice, { acceptBookings: true })),
    };
    const again = await untilServed(() =>
      crm.post<BookedPerson>(`${at}/bookings`, {
        ...other,
        customerReference: person.customerReference,
        state: 'BOOKED',
      }),
    );
    expect(again.body.booking.participation).toMatchObject({
      customerReference: person.customerReference,
      name: person.userName,
    });
    await expectOnly(practice, [person], 2);
  });
});
