import { waitUntil } from '@scheduling/embedded';
import type { Service } from '@scheduling/stack';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, path, untilServed } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type Practice,
  unique,
} from '@scheduling/test-stack/crm';
import { readMails, waitForMails } from '@scheduling/test-stack/inbox';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { kill, whileHanging } from './processes.ts';
import { stackForFaults } from './stack-with-faults.ts';

/** How often somebody is booked by a reference that has just changed, in each test. */
const tries = Number(process.env['RENAME_TRIES'] ?? 60);
const triesBetweenKills = 20;
const timeLimit = { timeout: 60_000 + tries * 1_000 };

let stack: TestStack;
beforeAll(async () => void (stack = await stackForFaults()), 400_000);

interface Person {
  name: string;
  reference: string;
  /** The references of the participations. */
  booked: string[];
}

interface ShownParticipation {
  reference: string;
  customerReference: string | null;
  name: string;
}

/** The customers of a provider, whose references change all the time, and their bookings. */
class Customers {
  readonly wrong: string[] = [];
  tried = 0;
  #people: Person[] = [];
  /** Few, so that each has meant many. */
  readonly #references = Array.from({ length: 5 }, () => `${unique('customer')}@test`);

  readonly practice: Practice;
  readonly appointment: string;

  constructor(practice: Practice, appointment: string) {
    [this.practice, this.appointment] = [practice, appointment];
  }

  /**
   * Changes references in one of the ways in which they can come to mean somebody else, and books for those who have
   * them then.
   */
  async step(): Promise<void> {
    const [first, second, third] = shuffled(this.#references);
    const holder = this.#holderOf(first!);
    const rotated = shuffled([1, 2, 3])[0]!;
    if (holder === undefined) await this.#create(first!);
    else if (rotated > 1) await this.#rotate([first!, second!, third!].slice(0, rotated));
    else {
      await this.#rename(holder, `${unique('retired')}@test`);
      if (chance(0.6)) await this.#create(first!);
    }
    for (const reference of chance(0.5) ? [first!, second!] : [first!]) await this.#book(reference);
  }

  /** What the lists say of all bookings now. */
  async check(): Promise<void> {
    const { crm, at } = this.practice;
    const { body } = await untilServed(() => crm.get<ShownParticipation[]>(`${at}/participations`));
    const shown = new Map(body.map((each) => [each.reference, each]));
    for (const { name, reference, booked } of this.#people) {
      for (const participation of booked)
        this.#compare(shown.get(participation), { name, customerReference: reference }, 'the list');
      const own = await untilServed(() =>
        crm.get<ShownParticipation[]>(`${at}/participations`, { query: { customerRef: reference } }),
      );
      if (
        own.body
          .map((each) => each.reference)
          .toSorted()
          .join() !== booked.toSorted().join()
      )
        this.wrong.push(`the list of ${reference} is not that of ${name}`);
    }
  }

  #holderOf(reference: string): Person | undefined {
    return this.#people.find((person) => person.reference === reference);
  }

  async #create(customerReference: string): Promise<void> {
    const { crm, at, provider } = this.practice;
    const name = unique('Person');
    if (chance(0.5)) {
      const participation = `${unique('participation')}@test`;
      this.#people.push({ name, reference: customerReference, booked: [] });
      this.#note(
        await this.#bring(participation, { customerReference, userName: name }),
        participation,
        customerReference,
      );
      return;
    }
    const { status } = await untilServed(() =>
      crm.post(`${at}/customers`, { customerReference, providerReference: provider, userName: name }),
    );
    if (status !== 200 && status !== 201) throw new Error(`${customerReference} was not created: ${status}`);
    this.#people.push({ name, reference: customerReference, booked: [] });
  }

  /** A repetition that finds nobody by the old reference tells that an attempt before it was made. */
  async #rename(person: Person, to: string): Promise<void> {
    const { crm, at } = this.practice;
    const { reference } = person;
    let unknown = false;
    await waitUntil(
      async () => {
        const { status } = await crm.put(at + path`/customers/${reference}`, { customerReference: to });
        if (status === 503) unknown = true;
        else if (status !== 200 && !(status === 404 && unknown))
          throw new Error(`${reference} was not renamed: ${status}`);
        return status !== 503;
      },
      { what: `${person.name} to have another reference`, timeoutMs: 60_000 },
    );
    person.reference = to;
  }

  /** Each gets the reference of the next one; of two, they change places. */
  async #rotate(references: string[]): Promise<void> {
    const holders = references.map((reference) => this.#holderOf(reference));
    const [last] = holders.slice(-1);
    if (last !== undefined) await this.#rename(last, `${unique('between')}@test`);
    for (let index = holders.length - 2; index >= 0; index -= 1)
      if (holders[index] !== undefined) await this.#rename(holders[index]!, references[index + 1]!);
    if (last !== undefined) await this.#rename(last, references[0]!);
  }

  async #book(customerReference: string): Promise<void> {
    this.tried += 1;
    const person = this.#holderOf(customerReference);
    const participation = `${unique('participation')}@test`;
    if (person !== undefined && chance(0.3)) {
      // An existing customer stays unchanged.
      this.#note(
        await this.#bring(participation, { customerReference, userName: unique('Nobody') }),
        participation,
        customerReference,
      );
      return;
    }
    const answer = await this.#send(participation, customerReference);
    if (person !== undefined) this.#note(answer, participation, customerReference);
    else if (answer.status !== 404) this.wrong.push(`nobody is ${customerReference}: ${answer.status} ${answer.text}`);
  }

  /** Books with a customer in the request. */
  #bring(reference: string, customer: { customerReference: string; userName: string }): Promise<Answer> {
    const { crm, at } = this.practice;
    return untilServed(() =>
      crm.post(`${at}/bookings`, { reference, appointmentReference: this.appointment, customer, state: 'BOOKED' }),
    );
  }

  #note(answer: Answer, participation: string, customerReference: string): void {
    const person = this.#holderOf(customerReference)!;
    if (answer.status !== 200 && answer.status !== 201) {
      this.wrong.push(`${customerReference} is ${person.name}: ${answer.status} ${answer.text}`);
      return;
    }
    person.booked.push(participation);
    const { body } = answer as Answer<{
      participation?: ShownParticipation;
      booking?: { participation: ShownParticipation };
    }>;
    this.#compare(
      body.booking?.participation ?? body.participation,
      { name: person.name, customerReference },
      'the answer',
    );
  }

  /** One of the requests that say for whom a booking is. */
  async #send(reference: string, customerReference: string): Promise<Answer> {
    const { crm, at } = this.practice;
    const appointmentReference = this.appointment;
    if (chance(0.4))
      return untilServed(() =>
        crm.post(`${at}/participations`, { reference, appointmentReference, customerReference, state: 'BOOKED' }),
      );
    if (chance(0.5))
      return untilServed(() =>
        crm.post(`${at}/bookings`, { reference, appointmentReference, customerReference, state: 'BOOKED' }),
      );
    await untilServed(() => crm.post(`${at}/bookings`, { reference, appointmentReference, state: 'RESERVED' }));
    return untilServed(() => crm.post(at + path`/bookings/${reference}`, { state: 'BOOKED', customerReference }));
  }

  #compare(
    shown: ShownParticipation | undefined,
    { name, customerReference }: Omit<ShownParticipation, 'reference'>,
    where: string,
  ): void {
    if (shown?.name === name && shown.customerReference === customerReference) return;
    this.wrong.push(
      `${where} says ${shown?.reference} is of ${shown?.name} (${shown?.customerReference}), not of ${name} (${customerReference})`,
    );
  }
}

async function startCustomers(): Promise<Customers> {
  const practice = await createPractice(await createCrm({}, stack.info));
  return new Customers(practice, await createAppointment(practice, { capacity: 1_000_000, acceptBookings: true }));
}

function chance(probability: number): boolean {
  return Math.random() < probability;
}

function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, at: Math.random() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ value }) => value);
}

describe('a booking by a reference that meant somebody else a moment ago', timeLimit, () => {
  it('is that of whoever has the reference', async () => {
    const customers = await startCustomers();
    while (customers.tried < tries) await customers.step();
    await customers.check();
    expect(customers.wrong).toEqual([]);
  });

  it('is so while no event arrives', async () => {
    const customers = await startCustomers();
    await whileHanging(stack, 'nats', async () => {
      while (customers.tried < tries) await customers.step();
      await customers.check();
    });
    expect(customers.wrong).toEqual([]);
  });

  it('is so while no event arrives, and the services are killed in between', async () => {
    const customers = await startCustomers();
    const victims: Service[] = ['calendar', 'customer'];
    await whileHanging(stack, 'nats', async () => {
      for (let round = 0; customers.tried < tries; round += 1) {
        const killing = delay(Math.random() * 200).then(() => kill(stack, victims[round % victims.length]!));
        for (const until = customers.tried + triesBetweenKills; customers.tried < until;) await customers.step();
        await killing;
      }
      // Who has which reference is shown again by itself, where a process ended between the change and what follows it.
      await waitUntil(
        async () => {
          const seen = customers.wrong.length;
          await customers.check();
          return customers.wrong.splice(seen).length === 0;
        },
        { what: 'all references to be shown', timeoutMs: 30_000 },
      );
    });
    expect(customers.wrong).toEqual([]);
  });
});

describe('a mail', timeLimit, () => {
  it('goes to the address that the customer has when it is written, though no event arrived', async () => {
    const practice = await createPractice(await createCrm({}, stack.info));
    const { crm, at, customerEmail, customer } = practice;
    const participation = await createParticipation(practice, await createAppointment(practice), {
      state: 'REQUESTED',
    });
    await waitForMails(customerEmail, 1, stack.info);
    const email = `new-${customerEmail}`;
    await whileHanging(stack, 'nats', async () => {
      expect(
        (await crm.put(at + path`/customers/${customer}`, { email, userName: 'New Name', language: 'de' })).status,
      ).toBe(200);
      expect((await crm.post(at + path`/participations/${participation}`, { state: 'BOOKED' })).status).toBe(200);
    });
    const [mail] = await waitForMails(email, 1, stack.info);
    expect(mail!.to).toEqual([{ address: email, name: 'New Name' }]);
    expect(mail!.subject).toMatch(/^Bestätigt: .* – Haircut$/);
    expect(await readMails(customerEmail, stack.info)).toHaveLength(1);
  });
});
