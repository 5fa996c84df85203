import { CalendarDetails, type CreateCalendarRequest } from '@scheduling/contracts/calendar/v1';
import { eventually, patiently, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

function newCalendar(changes: Partial<CreateCalendarRequest> = {}): CreateCalendarRequest {
  const content = { reference: freshReference('calendar'), resourceReference: freshReference('room') };
  return { ...owned, ...content, details: CalendarDetails.NAMES, ...changes };
}

async function subscribe(changes: Partial<CreateCalendarRequest> = {}) {
  const request = newCalendar(changes);
  const { secret } = await calendar.calendars.createCalendar(request);
  return { ...request, secret: secret! };
}

/** In the time that calendars show. */
function addAppointment(changes: Parameters<typeof createAppointment>[1]): Promise<string> {
  const day = new Date(Date.now() + 10 * 24 * 60 * 60 * 1_000).toISOString().slice(0, 10);
  return createAppointment(calendar, { start: `${day}T10:00`, end: `${day}T11:00`, ...changes });
}

const readEvents = async (secret: string, version = '') => {
  const answer = await calendar.persons.readCalendar({ secret, version });
  return { ...answer, text: answer.events?.toString() };
};
const countEvents = (text: string | undefined): number => text!.split('BEGIN:VEVENT').length - 1;
const listReferences = async (owner = owned) =>
  (await calendar.calendars.listCalendars(owner)).calendars.map(({ reference }) => reference);

describe('a subscription', () => {
  it('has a secret of 256 bits, which is shown once, and of which only the hash is stored', async () => {
    const request = newCalendar();
    const { calendar: made, secret, created } = await calendar.calendars.createCalendar(request);
    expect([created, Buffer.from(secret!, 'base64url').length, secret!.length]).toEqual([true, 32, 43]);
    const { crmId: _crmId, providerReference: _providerReference, ...content } = request;
    expect(made).toMatchObject(content);
    expect(await calendar.calendars.createCalendar(request)).toEqual({
      calendar: made,
      secret: undefined,
      created: false,
    });
    expect(await listReferences()).toContain(request.reference);
    const row = await calendar.database.kysely
      .selectFrom('calendarSubscription')
      .selectAll()
      .where('reference', '=', request.reference)
      .executeTakeFirstOrThrow();
    expect(row.secretHash).toEqual(createHash('sha256').update(secret!).digest());
    expect(JSON.stringify(row)).not.toContain(secret);
  });

  it('is not made twice under its reference, with other content or for another provider', async () => {
    const request = newCalendar();
    await calendar.calendars.createCalendar(request);
    for (const changes of [
      { resourceReference: undefined },
      { contactReference: 'mara' },
      { details: CalendarDetails.CONTACT },
      { providerReference: 'p2' },
    ])
      expect(await refusal(calendar.calendars.createCalendar({ ...request, ...changes }))).toMatchObject({
        code: 'calendar.reference_taken',
      });
    expect((await calendar.calendars.createCalendar({ ...request, crmId: 'two' })).created).toBe(true);
  });

  it('is made, and gets another secret, once for an idempotency key: a repetition does not have the secret', async () => {
    const [request, key, otherKey] = [newCalendar(), randomUUID(), randomUUID()];
    const first = await withKey(key, () => calendar.calendars.createCalendar(request));
    const again = await withKey(key, () => calendar.calendars.createCalendar(request));
    expect(again).toEqual({ ...first, secret: undefined });
    const replacing = { ...owned, calendarReference: request.reference };
    const { secret } = await withKey(otherKey, () => calendar.calendars.replaceCalendarSecret(replacing));
    const repeated = await withKey(otherKey, () => calendar.calendars.replaceCalendarSecret(replacing));
    expect(repeated).toEqual({ calendar: first.calendar, secret: undefined });
    expect((await readEvents(secret!)).text).toBe('');
    expect(await refusal(readEvents(first.secret!))).toMatchObject({ code: 'link.not_found' });
    await calendar.calendars.deleteCalendar(replacing);
    expect(await refusal(withKey(key, () => calendar.calendars.createCalendar(request)))).toMatchObject({
      code: 'calendar.not_found',
    });
  });

  it('is one of at most 100 of a provider, also of many that are made at once', async () => {
    const owner = { crmId: 'one', providerReference: 'Pacific/Apia' };
    const requests = Array.from({ length: 110 }, () => newCalendar(owner));
    const results = await Promise.allSettled(
      requests.map((request) => patiently(() => calendar.calendars.createCalendar(request))),
    );
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    expect(refused).toEqual(
      Array.from({ length: 10 }, () => expect.objectContaining({ code: 'calendar.limit_reached' })),
    );
    const references = await listReferences(owner);
    expect(references).toHaveLength(100);
    await calendar.calendars.deleteCalendar({ ...owner, calendarReference: references[0]! });
    expect((await calendar.calendars.createCalendar(newCalendar(owner))).created).toBe(true);
  });

  it('cannot be changed or seen under another provider or CRM, and is dead once it is deleted', async () => {
    const { reference: calendarReference, secret } = await subscribe();
    for (const owner of [
      { ...owned, providerReference: 'p2' },
      { ...owned, crmId: 'two' },
    ]) {
      const key = { ...owner, calendarReference };
      expect(await refusal(calendar.calendars.deleteCalendar(key))).toMatchObject({ code: 'calendar.not_found' });
      expect(await refusal(calendar.calendars.replaceCalendarSecret(key))).toMatchObject({
        code: 'calendar.not_found',
      });
      expect(await listReferences(owner)).not.toContain(calendarReference);
    }
    expect((await readEvents(secret)).text).toBe('');
    await calendar.calendars.deleteCalendar({ ...owned, calendarReference });
    expect(await refusal(readEvents(secret))).toMatchObject({ code: 'link.not_found' });
    expect(await refusal(calendar.calendars.deleteCalendar({ ...owned, calendarReference }))).toMatchObject({
      code: 'calendar.not_found',
    });
  });
});

describe('the events of a subscription', () => {
  it('are those of its provider, although others name the same resource', async () => {
    const { resourceReference, secret } = await subscribe();
    await addAppointment({ resourceReference, description: 'Own' });
    for (const owner of [
      { ...owned, providerReference: 'p2' },
      { ...owned, crmId: 'two' },
    ])
      await addAppointment({ ...owner, resourceReference, description: 'Foreign' });
    const { text } = await readEvents(secret);
    expect([countEvents(text), text!.includes('Own'), text!.includes('Foreign')]).toEqual([1, true, false]);
  });

  it('have a version, to which nothing is answered that the reader has', async () => {
    const { resourceReference, secret } = await subscribe();
    await addAppointment({ resourceReference });
    const { version } = await readEvents(secret);
    expect(await readEvents(secret, version)).toMatchObject({ version, text: undefined });
    for (const other of ['', '1', 'nonsense', '-1', '9'.repeat(30)])
      expect(countEvents((await readEvents(secret, other)).text)).toBe(1);
    await addAppointment({ resourceReference });
    const changed = await readEvents(secret, version);
    expect(countEvents(changed.text)).toBe(2);
    expect(Number(changed.version)).toBeGreaterThan(Number(version));
  });

  it('are read again by those who have them after whatever changes a person, whom no event is about', async () => {
    const { resourceReference, secret } = await subscribe({ details: CalendarDetails.CONTACT });
    const hours = (count: number) => new Date(Date.now() + count * 60 * 60 * 1_000).toISOString().slice(0, 16);
    const times = [
      { start: hours(-30), end: hours(-28) },
      { start: hours(100), end: hours(101) },
    ];
    const [past, future] = await Promise.all(times.map((time) => addAppointment({ resourceReference, ...time })));
    const people = await Promise.all(
      [past!, future!].map(async (appointmentReference) => {
        const customerReference = await createCustomer(calendar);
        await calendar.participations.createParticipation(
          newParticipation({ appointmentReference, customerReference }),
        );
        const { customer } = await calendar.customers.getCustomer({
          crmId: 'one',
          key: { $case: 'reference', value: { providerReference: 'p1', customerReference } },
        });
        return { customerReference, customerId: customer!.id };
      }),
    );
    let known = await readEvents(secret);
    const expectChange = async (change: () => Promise<unknown>): Promise<string> => {
      expect((await readEvents(secret, known.version)).text).toBeUndefined();
      await change();
      known = await readEvents(secret, known.version);
      expect(known.text).toBeDefined();
      return known.text!.replaceAll('\r\n ', '');
    };
    for (const { customerReference, customerId } of people) {
      const renamed = await expectChange(async () => {
        await calendar.customers.updateCustomer({ ...owned, customerReference, userName: 'Ada King' });
        await calendar.copies.refreshCustomer({ crmId: 'one', customerId });
      });
      expect(renamed).toContain('Ada King');
      // As if it had been long ago: it counts as recent for a minute.
      await sql`UPDATE customer SET refreshed_at = refreshed_at - interval '2 minutes' WHERE id = ${customerId}`.execute(
        calendar.database.kysely,
      );
    }
    await readEvents(secret, known.version);
    const { rows } = await sql<{ isUnchanged: boolean; facts: string | null }>`
      SELECT read.* FROM calendar_subscription AS subscription, read_calendar(jsonb_build_object(
          'crmId', crm_id, 'subscriptionId', id, 'version', ${known.version}::text, 'textVersion', '1 de')) AS read
       WHERE resource_reference = ${resourceReference}`.execute(calendar.database.kysely);
    expect(rows).toMatchObject([{ isUnchanged: true, facts: null }]);
    for (const { customerId } of people) {
      const text = await expectChange(() =>
        calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true }),
      );
      expect(text.match(/Ada King/g) ?? []).toHaveLength(customerId === people[0]!.customerId ? 1 : 0);
    }
  });

  it('leave nothing of the persons in the database that could be compared with a name', async () => {
    const { resourceReference, secret } = await subscribe({ details: CalendarDetails.CONTACT });
    const other = await subscribe({ details: CalendarDetails.CONTACT, resourceReference });
    await calendar.participations.createParticipation(
      newParticipation({
        appointmentReference: await addAppointment({ resourceReference }),
        customerReference: await createCustomer(calendar),
      }),
    );
    await Promise.all([secret, other.secret].map((each) => readEvents(each)));
    const { rows } = await sql<{ digest: Buffer }>`
      SELECT shown.digest FROM shown_appointment AS shown JOIN calendar_subscription AS subscription
          ON subscription.crm_id = shown.crm_id AND subscription.id = shown.subscription_id
       WHERE resource_reference = ${resourceReference}`.execute(calendar.database.kysely);
    expect(rows).toHaveLength(2);
    // The same text, with another secret.
    expect(rows[0]!.digest.equals(rows[1]!.digest)).toBe(false);
  });

  it('wait for no booking, and let no booking wait', async () => {
    const { resourceReference, secret } = await subscribe();
    const appointmentReference = await addAppointment({ resourceReference });
    const customerReference = await createCustomer(calendar);
    const { database } = calendar;
    // A booking in progress: everything of the appointment is locked.
    await database.transaction(async (tx) => {
      await sql`SELECT FROM appointment WHERE reference = ${appointmentReference} FOR UPDATE`.execute(tx);
      expect(countEvents((await readEvents(secret)).text)).toBe(1);
    });
    // A read in progress that has found a change.
    await database.transaction(async (tx) => {
      await sql`SELECT FROM calendar_subscription WHERE resource_reference = ${resourceReference} FOR UPDATE`.execute(
        tx,
      );
      const booking = newParticipation({ appointmentReference, customerReference });
      expect((await calendar.participations.createParticipation(booking)).created).toBe(true);
    });
  });

  it('are the same for two who find the same change at different times', async () => {
    const { resourceReference, secret } = await subscribe();
    await addAppointment({ resourceReference });
    const { database } = calendar;
    const second = async (): Promise<number> => {
      const { rows } = await sql<{
        second: number;
      }>`SELECT extract(epoch FROM clock_timestamp())::int8 AS second`.execute(database.kysely);
      return rows[0]!.second;
    };
    const readings: Promise<{ text: string | undefined }>[] = [];
    await database.transaction(async (tx) => {
      await sql`SELECT FROM calendar_subscription WHERE resource_reference = ${resourceReference} FOR UPDATE`.execute(
        tx,
      );
      readings.push(patiently(() => readEvents(secret)));
      await eventually(async () => expect(await countWaiting(calendar)).toBe(1));
      const first = await second();
      await eventually(async () => expect(await second()).toBeGreaterThan(first));
      readings.push(patiently(() => readEvents(secret)));
      await eventually(async () => expect(await countWaiting(calendar)).toBe(2));
    });
    const [one, other] = await Promise.all(readings);
    expect(countEvents(one!.text)).toBe(1);
    expect(other).toEqual(one);
  });

  it('that are left out are forgotten', async () => {
    const { resourceReference, secret } = await subscribe();
    const appointmentReference = await addAppointment({ resourceReference });
    const kept = async () =>
      (
        await sql`SELECT FROM shown_appointment WHERE subscription_id IN (
          SELECT id FROM calendar_subscription WHERE resource_reference = ${resourceReference})`.execute(
          calendar.database.kysely,
        )
      ).rows.length;
    await readEvents(secret);
    expect(await kept()).toBe(1);
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference });
    expect((await readEvents(secret)).text).toBe('');
    expect(await kept()).toBe(0);
  });

  it('are the first 5,000, and name at most 200 persons each', async () => {
    const { resourceReference, secret } = await subscribe();
    const { kysely } = calendar.database;
    const appointmentReference = await addAppointment({ resourceReference, capacity: 300 });
    await sql`
      INSERT INTO participation (crm_id, id, appointment_id, reference, name, state, exempt)
      SELECT crm_id, uuidv7(), id, ${resourceReference} || number, 'Grace ' || number, 'BOOKED', true
        FROM appointment, generate_series(1, 203) AS number WHERE reference = ${appointmentReference}`.execute(kysely);
    const { text } = await readEvents(secret);
    const unfolded = text!.replaceAll('\r\n ', '');
    expect(unfolded).toContain('203 von 300');
    expect(unfolded.match(/Grace \d+/g)).toHaveLength(200);
    expect(unfolded).toContain('und 3 weitere Personen');
    await sql`
      INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, starts_at, ends_at,
                               capacity, taken, accept_bookings, content_digest)
      SELECT crm_id, provider_id, reference || number, resource_reference, product_reference, 'Number ' || number,
             now() + number * interval '1 minute', now() + number * interval '1 minute' + interval '1 hour', 1, 0, true, ''
        FROM appointment, generate_series(1, 5001) AS number WHERE reference = ${appointmentReference}`.execute(kysely);
    const all = (await readEvents(secret)).text!;
    expect(countEvents(all)).toBe(5_000);
    expect([all.includes('Number 5000 '), all.includes('Number 5001 ')]).toEqual([true, false]);
  });
});
