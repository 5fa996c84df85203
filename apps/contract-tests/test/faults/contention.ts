import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, path, type Problem, untilServed } from '@scheduling/test-stack/client';
import { createAppointment, type Practice, type TestCrm, unique } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { practiceForFaults } from './stack-with-faults.ts';

const clients = 200;

let stack: TestStack;
let crm: TestCrm;
let practice: Practice;
beforeAll(async () => void ({ stack, crm, practice } = await practiceForFaults()), 400_000);

// The effects of concurrent callers on each other are tested in calendar; here the requests go through the gateway.
describe(`${clients} concurrent clients`, { timeout: 120_000 }, () => {
  it.each(['BOOKED', 'RESERVED'])('get the only seat of an appointment by creating %s, and no more', async (state) => {
    const appointmentReference = await createAppointment(practice, { capacity: 1 });
    const answers = await Promise.all(
      Array.from({ length: clients }, () => create(appointmentReference, newReference(), state)),
    );
    expectOneSeat(answers);
    await expectTaken(appointmentReference, 1);
  });

  it('get the only seat by confirming requested participations, and no more', async () => {
    const appointmentReference = await createAppointment(practice, { capacity: 1 });
    const references = Array.from({ length: clients }, newReference);
    await Promise.all(references.map((reference) => create(appointmentReference, reference, 'REQUESTED')));
    expectOneSeat(await Promise.all(references.map(confirm)));
    await expectTaken(appointmentReference, 1);
  });

  it('that repeat one request create one participation', async () => {
    const appointmentReference = await createAppointment(practice, { capacity: 1 });
    const reference = newReference();
    const answers = await Promise.all(
      Array.from({ length: clients }, () => create(appointmentReference, reference, 'BOOKED')),
    );
    expect(answers.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(1);
    expect(answers.filter(({ status }) => status === 200 || status === 201)).toHaveLength(clients);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    await expectTaken(appointmentReference, 1);
  });

  it('cause no deadlock', async () => {
    const [row] = await query<{ deadlocks: string }>(
      'calendar',
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      [],
      stack.info,
    );
    expect(Number(row!.deadlocks)).toBe(0);
  });
});

const newReference = (): string => `${unique('p')}@test`;

/** Repeating it is safe: the client that got the seat gets it again (interface 1). */
function create(appointmentReference: string, reference: string, state: string): Promise<Answer<Problem>> {
  const body = { reference, appointmentReference, customerReference: practice.customer, state };
  return untilServed(() => crm.post<Problem>(`${practice.at}/participations`, body, { query: { sendMails: false } }));
}

function confirm(reference: string): Promise<Answer<Problem>> {
  return untilServed(() =>
    crm.post<Problem>(
      practice.at + path`/participations/${reference}`,
      { state: 'BOOKED' },
      { query: { sendMails: false } },
    ),
  );
}

function expectOneSeat(answers: Answer<Problem>[]): void {
  expect(answers.filter(({ status }) => status === 200 || status === 201)).toHaveLength(1);
  expect(
    answers.filter((answer) => answer.status === 409 && answer.body.code === 'participation.capacity_exhausted'),
  ).toHaveLength(clients - 1);
}

/** Checks both the counter and the participations shown. */
async function expectTaken(appointmentReference: string, seats: number): Promise<void> {
  const [row] = await query<{ taken: string }>(
    'calendar',
    'SELECT taken FROM appointment WHERE crm_id = $1 AND reference = $2',
    [crm.crmId, appointmentReference],
    stack.info,
  );
  expect(Number(row!.taken)).toBe(seats);
  const { body } = await crm.get<{ reference: string; participations: { state: string }[] }[]>(
    `${practice.at}/appointments`,
  );
  const { participations } = body.find(({ reference }) => reference === appointmentReference)!;
  expect(participations.filter(({ state }) => state === 'BOOKED' || state === 'RESERVED')).toHaveLength(seats);
}
