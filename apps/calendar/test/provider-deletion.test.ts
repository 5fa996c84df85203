import { CalendarDetails, TimeslotState } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { createRandom } from '@scheduling/testing/random';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { closeProvider } from '../src/provider/close-provider.ts';
import { settleClosedProviders } from '../src/provider/settle-closed-providers.ts';
import {
  type Calendar,
  type CalendarUnderTest,
  freshReference,
  newAppointment,
  newParticipation,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { newHours, putHours } from './hours-under-test.ts';

const crmId = 'one';
let calendar: CalendarUnderTest;
let replica: Calendar;
beforeAll(async () => {
  calendar = await startCalendar();
  replica = await calendar.startReplica();
}, 180_000);
afterAll(async () => {
  await replica?.[Symbol.asyncDispose]();
  await calendar?.[Symbol.asyncDispose]();
});

async function createProvider(reference = freshReference('provider')) {
  const { provider } = await calendar.identity.createProvider({
    crmId,
    reference,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: reference,
  });
  return provider!;
}

const setNotice = (providerReference: string) =>
  calendar.bookings.updateBookingRules({ crmId, providerReference, minimumNotice: 7, noHorizon: false });

const remove = (reference: string, from: Calendar = calendar) => from.providers.deleteProvider({ crmId, reference });

/** What a provider can have, as the message names it, and how it gets one. */
const things = {
  timeslots: async (providerReference: string, from: Calendar = calendar) => {
    const timeslot = {
      reference: freshReference('timeslot'),
      resourceReference: 'r',
      start: '2099-06-01T08:00',
      end: '2099-06-01T12:00',
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: TimeslotState.BOOKABLE,
    };
    await from.timeslots.createTimeslots({ crmId, providerReference, timeslots: [timeslot] });
  },
  appointments: async (providerReference: string, from: Calendar = calendar) => {
    await from.appointments.createAppointment(newAppointment({ providerReference }));
  },
  'opening hours': async (providerReference: string, from: Calendar = calendar) => {
    await putHours(from, { crmId, providerReference, resourceReference: 'with-hours' }, newHours());
  },
  blocks: async (providerReference: string, from: Calendar = calendar) => {
    const resource = { crmId, providerReference, resourceReference: 'r' };
    const period = { start: '2099-06-01T08:00', end: '2099-06-01T09:00' };
    await from.blocks.createBlock({ ...resource, reference: freshReference('block'), ...period });
  },
  calendars: async (providerReference: string, from: Calendar = calendar) => {
    const reference = freshReference('calendar');
    await from.calendars.createCalendar({ crmId, providerReference, reference, details: CalendarDetails.NONE });
  },
  customers: async (providerReference: string) => {
    const customerReference = freshReference('customer');
    await calendar.customers.createCustomer({ crmId, providerReference, customerReference, userName: 'Ada' });
  },
};
type Thing = keyof typeof things;
const kinds = Object.keys(things) as Thing[];

async function addAll(providerReference: string, from: Calendar = calendar): Promise<void> {
  for (const add of Object.values(things)) await add(providerReference, from);
}

/** The tables of calendar with rows of this provider. */
async function tablesWith(providerId: string): Promise<string[]> {
  const { rows } = await sql<{ name: string; column: string }>`
    SELECT table_name AS name, column_name AS "column" FROM information_schema.columns
     WHERE table_schema = 'public' AND (column_name = 'provider_id' OR table_name = 'provider' AND column_name = 'id')`.execute(
    calendar.database.kysely,
  );
  const found = await Promise.all(
    rows.map(async ({ name, column }) => {
      const { rows: some } = await sql`
        SELECT FROM ${sql.table(name)} WHERE ${sql.ref(column)} = ${providerId} LIMIT 1`.execute(
        calendar.database.kysely,
      );
      return some.length > 0 ? [name] : [];
    }),
  );
  return found.flat();
}

const outcomeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: unknown) => {
      if (!(error instanceof DomainError)) throw error;
      return error.code;
    },
  );

describe('a provider of which nothing is left', () => {
  it('is deleted with its booking rules, and its reference is free', async () => {
    const { id, reference } = await createProvider();
    await setNotice(reference);
    // So that it has the provider in memory.
    await replica.timeslots.listTimeslots({
      crmId,
      providerReference: reference,
      resourceReference: 'r',
      from: '2099-06-01T00:00',
      to: '2099-06-02T00:00',
    });
    await remove(reference);
    expect(await tablesWith(id)).toEqual([]);
    expect((await refusal(remove(reference))).code).toBe('provider.not_found');
    expect(await outcomeOf(things.timeslots(reference))).toBe('provider.not_found');
    expect(await outcomeOf(things.customers(reference))).toBe('provider.not_found');

    const successor = await createProvider(reference);
    expect(successor.id).not.toBe(id);
    const { rules } = await replica.bookings.getBookingRules({ crmId, providerReference: reference });
    expect(rules!.minimumNotice).toBe(0);
    await addAll(reference, replica);
    expect(await tablesWith(id)).toEqual([]);
    expect(await tablesWith(successor.id)).toContain('timeslot');
  });

  it('is one whose participations are found under its reference, also by a process that remembers its predecessor', async () => {
    const { reference } = await createProvider();
    const key = { crmId, providerReference: reference, participationReference: 'p' };
    expect((await refusal(replica.participations.getParticipation(key))).code).toBe('participation.not_found');
    await remove(reference);
    expect((await refusal(replica.participations.getParticipation(key))).code).toBe('provider.not_found');
    await createProvider(reference);
    const appointment = newAppointment({ providerReference: reference });
    await calendar.appointments.createAppointment(appointment);
    const customerReference = freshReference('customer');
    await calendar.customers.createCustomer({ crmId, providerReference: reference, customerReference, userName: 'A' });
    const participation = newParticipation(
      { appointmentReference: appointment.reference, customerReference },
      { providerReference: reference },
    );
    await calendar.participations.createParticipation(participation);
    const found = await replica.participations.getParticipation({
      ...key,
      participationReference: participation.reference,
    });
    expect(found).toBeDefined();
  });

  it.each(kinds)('is not one that has %s, which the message names', async (kind) => {
    const { reference } = await createProvider();
    await things[kind](reference);
    const refused = await refusal(remove(reference));
    expect(refused).toMatchObject({ category: 'conflict', code: 'provider.in_use' });
    expect(refused.message).toContain(kind);
    expect(refused.message).toMatch(/\(1\)/);
    // Nothing has changed.
    await addAll(reference);
    if (kind === 'customers') return;
  });

  it('is not one of another CRM', async () => {
    const { reference } = await createProvider();
    expect((await refusal(calendar.providers.deleteProvider({ crmId: 'two', reference }))).code).toBe(
      'provider.not_found',
    );
    await remove(reference);
  });
});

describe('a deletion of which the process has died', () => {
  const version = 1;

  it.each(kinds)('leaves a provider that can have %s', async (kind) => {
    const { id, reference } = await createProvider();
    await setNotice(reference);
    await calendar.customers.closeProvider({ crmId, providerId: id, version });
    await closeProvider(calendar, { crmId, id, version });
    expect(await tablesWith(id)).toEqual([]);
    await things[kind](reference);
    const { rules } = await calendar.bookings.getBookingRules({ crmId, providerReference: reference });
    expect(rules!.minimumNotice).toBe(7);
    await addAll(reference, replica);
    expect((await refusal(remove(reference))).code).toBe('provider.in_use');
  });

  it('completes when it is repeated', async () => {
    const { id, reference } = await createProvider();
    await calendar.customers.closeProvider({ crmId, providerId: id, version });
    await remove(reference);
    expect((await refusal(remove(reference))).code).toBe('provider.not_found');
    const { id: other, reference: otherReference } = await createProvider();
    await calendar.customers.closeProvider({ crmId, providerId: other, version });
    await closeProvider(calendar, { crmId, id: other, version });
    await remove(otherReference);
    expect((await refusal(remove(otherReference))).code).toBe('provider.not_found');
    expect([...(await tablesWith(id)), ...(await tablesWith(other))]).toEqual([]);
  });

  it('cannot be completed by the process once the provider was used', async () => {
    const { id, reference } = await createProvider();
    await calendar.customers.closeProvider({ crmId, providerId: id, version });
    await closeProvider(calendar, { crmId, id, version });
    await things.timeslots(reference);
    expect(await calendar.identity.deleteClosedProvider({ crmId, providerId: id, version })).toEqual({
      deleted: false,
    });
    expect((await refusal(remove(reference))).code).toBe('provider.in_use');
  });

  it('is ended by calendar after a minute, and what was deleted is forgotten', async () => {
    const { id, reference } = await createProvider();
    await setNotice(reference);
    await closeProvider(calendar, { crmId, id, version });
    const gone = await createProvider();
    await remove(gone.reference);
    const isClosed = async () =>
      (
        await calendar.database.kysely
          .selectFrom('closedProvider')
          .select('id')
          .where('id', 'in', [id, gone.id])
          .execute()
      ).length;
    await settleClosedProviders(calendar, 1_000);
    expect(await isClosed()).toBe(2);
    await calendar.database.kysely
      .updateTable('closedProvider')
      .set({ closedAt: sql`closed_at - interval '2 minutes'` })
      .where('id', 'in', [id, gone.id])
      .execute();
    await settleClosedProviders(calendar, 1_000);
    expect(await isClosed()).toBe(0);
    expect(await tablesWith(id)).toEqual(expect.arrayContaining(['provider', 'booking_rules']));
    expect(await tablesWith(gone.id)).toEqual([]);
  });
});

describe('deletions at the same time', () => {
  it.each(kinds)('do not open each other’s provider for %s', async (kind) => {
    const { id, reference } = await createProvider();
    const { provider } = await calendar.identity.updateProvider({ crmId, reference, name: 'Changed' });
    const { version } = provider!;
    // The second one has read an older version.
    for (const each of [version, version - 1]) {
      await calendar.customers.closeProvider({ crmId, providerId: id, version: each });
      await closeProvider(calendar, { crmId, id, version: each });
    }
    await things[kind](reference);
    expect(await calendar.identity.deleteClosedProvider({ crmId, providerId: id, version })).toEqual({
      deleted: false,
    });
  });
});

describe('whoever uses a provider while it is deleted', () => {
  it('has it, or finds it deleted', async () => {
    const seed = Number(process.env['DELETION_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const random = createRandom(seed, 0);
    const outcomes = new Map<string, number>();
    for (let round = 0; round < Number(process.env['DELETION_ROUNDS'] ?? 40); round += 1) {
      const { id, reference } = await createProvider();
      const chosen = random.shuffled(kinds).slice(0, random.integer(1, 3));
      const uses = chosen.map(async (kind) => {
        for (let calls = random.integer(0, 5); calls > 0; calls -= 1) await calendar.identity.getCrm({ crmId });
        return outcomeOf(things[kind](reference, random.pick([calendar, replica])));
      });
      const [deletion, ...used] = await Promise.all([outcomeOf(remove(reference)), ...uses]);
      outcomes.set(deletion, (outcomes.get(deletion) ?? 0) + 1);
      const about = `seed ${seed}, round ${round}: ${deletion}, ${chosen.join()}: ${used.join()}`;
      const { provider } = await calendar.identity
        .getProvider({ crmId, key: { $case: 'id', value: id } })
        .catch(() => ({ provider: undefined }));
      if (provider === undefined) {
        expect(deletion, about).toBe('done');
        expect(
          used.every((outcome) => outcome !== 'done'),
          about,
        ).toBe(true);
        expect(await tablesWith(id), about).toEqual([]);
        expect(await outcomeOf(things.customers(reference)), about).toBe('provider.not_found');
      } else {
        expect(deletion, about).not.toBe('done');
        await addAll(reference);
      }
      expect([deletion, ...used], about).toSatisfy((all: string[]) =>
        all.every((code) =>
          ['done', 'provider.in_use', 'provider.not_found', 'service.unavailable', 'database.unavailable'].includes(
            code,
          ),
        ),
      );
    }
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['provider.in_use']));
  }, 240_000);
});
