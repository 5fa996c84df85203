import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause, ParticipationChanged } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { callFunction } from '@scheduling/postgres';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMail } from './read-mail.ts';
import {
  crmId,
  processed,
  providerReference,
  publishEvent,
  startNotification,
  type NotificationUnderTest,
} from './notification-under-test.ts';

const { UNSPECIFIED, BOOKED, CANCELED } = ParticipationState;
const inTheirOrder = ['booking-confirmed', 'booking-moved', 'booking-cancelled'];

let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification({ maxAttempts: 2, timings: { firstRetryMs: 50, pollMs: 50 } });
}, 180_000);
afterAll(() => stack[Symbol.asyncDispose]());

interface Change {
  eventId: string;
  data: ParticipationChanged;
}

/** Somebody whose booking was confirmed, moved and cancelled, of which nothing has been published. */
async function somebody(): Promise<{ participationId: string; email: string; changes: [Change, Change, Change] }> {
  const name = `person-${(names += 1)}`;
  const email = `${name}@example.com`;
  const owned = { crmId, providerReference };
  await stack.customers.createCustomer({ ...owned, customerReference: name, userName: name, email, language: 'en' });
  const appointment = {
    start: '2030-07-01T10:00',
    end: '2030-07-01T11:00',
    capacity: 50,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
  };
  await stack.appointments.createAppointment({ ...owned, reference: name, ...appointment, participations: [] });
  const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: false };
  await stack.participations.createParticipation({
    ...owned,
    ...flags,
    reference: name,
    appointmentReference: name,
    customerReference: name,
    state: BOOKED,
  });
  const { id: participationId } = await stack.participations.getParticipation({
    ...owned,
    participationReference: name,
  });
  const { customer } = await stack.customers.getCustomer({
    crmId,
    key: { $case: 'reference', value: { providerReference, customerReference: name } },
  });
  const ids = {
    crmId,
    participationId,
    customerId: customer!.id,
    appointmentId: randomUUIDv7(),
    providerId: customer!.providerId,
  };
  const common = {
    ...ids,
    notify: true,
    notifyProvider: false,
    decided: false,
    actor: 'service',
    neverInvited: false,
    exempt: false,
    ordinal: 0,
    previousOrdinal: 0,
  };
  const [created, moved, cancelled] = [randomUUIDv7(), randomUUIDv7(), randomUUIDv7()] as const;
  return {
    participationId,
    email,
    changes: [
      {
        eventId: created,
        data: {
          ...common,
          version: 1,
          cause: ParticipationChangeCause.CREATED,
          fromState: UNSPECIFIED,
          toState: BOOKED,
        },
      },
      {
        eventId: moved,
        data: {
          ...common,
          version: 2,
          cause: ParticipationChangeCause.MOVED,
          fromState: BOOKED,
          toState: BOOKED,
          previousMailEventId: created,
        },
      },
      {
        eventId: cancelled,
        data: {
          ...common,
          version: 3,
          cause: ParticipationChangeCause.UPDATED,
          fromState: BOOKED,
          toState: CANCELED,
          previousMailEventId: moved,
        },
      },
    ],
  };
}

/** Resolves when notification has processed it. */
async function publish({ eventId, data }: Change): Promise<void> {
  await processed(
    stack,
    events.participationChanged,
    await publishEvent(stack, eventId, events.participationChanged, ParticipationChanged.encode(data).finish()),
  );
}

/** Which mails the person has received, in the order of their arrival. */
const received = (email: string) =>
  stack.smtp.mails.filter(({ recipients }) => recipients.includes(email)).map((mail) => readMail(mail).template);

const outcomes = (participationId: string) =>
  stack.database.kysely
    .selectFrom('mail')
    .select(['template', 'state', 'lastError'])
    .where('aboutId', '=', participationId)
    .orderBy('version')
    .execute();

const superseded = { state: 'failed', lastError: 'superseded' };

describe('mails about one booking', () => {
  it.each([[[0, 1, 2]], [[0, 2, 1]], [[1, 0, 2]], [[1, 2, 0]], [[2, 0, 1]], [[2, 1, 0]]])(
    'are sent in the order of its changes, although their events arrive as %j',
    async (arrival) => {
      const { email, changes } = await somebody();
      for (const index of arrival) {
        await publish(changes[index]!);
        // What is due has been written and sent in between.
        const other = await somebody();
        await publish(other.changes[0]);
        await eventually(() => expect(received(other.email)).toEqual(['booking-confirmed']));
      }
      await eventually(() => expect(received(email)).toEqual(inTheirOrder));
    },
  );

  it('do not wait for one whose event was put aside, and then it is not sent any more', async () => {
    const {
      participationId,
      email,
      changes: [created, moved],
    } = await somebody();
    await publishEvent(stack, created.eventId, events.participationChanged, Buffer.from('not protobuf'));
    await publish(moved);
    await eventually(() => expect(received(email)).toEqual(['booking-moved']));
    await stack.database.kysely.deleteFrom('deadLetter').execute();
    await publish(created);
    await eventually(async () =>
      expect(await outcomes(participationId)).toMatchObject([superseded, { state: 'sent' }]),
    );
    expect(received(email)).toEqual(['booking-moved']);
  });

  it('wait an hour for the event of the one before, and not for one that is older than the stream', async () => {
    const [late, old] = [await somebody(), await somebody()];
    await publish(late.changes[1]);
    const { data } = old.changes[1];
    const aWeekAgo = (Date.now() - 7 * 24 * 3_600_000 - 1).toString(16).padStart(12, '0');
    await publish({
      ...old.changes[1],
      data: {
        ...data,
        previousMailEventId: data.previousMailEventId!.replace(
          /^.{13}/,
          `${aWeekAgo.slice(0, 8)}-${aWeekAgo.slice(8)}`,
        ),
      },
    });
    await eventually(() => expect(received(old.email)).toEqual(['booking-moved']));
    expect(received(late.email)).toEqual([]);
    await sql`UPDATE unwritten_mail SET created_at = created_at - interval '1 hour' WHERE about_id = ${late.participationId}`.execute(
      stack.database.kysely,
    );
    await eventually(() => expect(received(late.email)).toEqual(['booking-moved']));
    await publish(late.changes[0]);
    await eventually(async () =>
      expect(await outcomes(late.participationId)).toMatchObject([superseded, { state: 'sent' }]),
    );
    expect(received(late.email)).toEqual(['booking-moved']);
  });

  it.each([
    { failures: 0, expected: ['booking-confirmed', 'booking-moved'], first: { state: 'sent' } },
    { failures: 10, expected: ['booking-moved'], first: superseded },
  ])(
    'wait for one that could not be written $failures times, other than because something did not answer',
    async ({ failures, expected, first }) => {
      const {
        participationId,
        email,
        changes: [created, moved],
      } = await somebody();
      await stack.database.transaction(async (tx) => {
        for (const { eventId, data } of [created, moved]) {
          const template = eventId === created.eventId ? 'booking-confirmed' : 'booking-moved';
          const mail = {
            crmId,
            eventId,
            aboutId: participationId,
            version: data.version,
            template,
            calendarMethod: 'REQUEST',
            customerId: data.customerId,
            providerId: data.providerId,
          };
          const request = { ...mail, actor: 'service', requestId: 'test', maxWaiting: 5, urgentTemplates: [] };
          await callFunction(tx, { name: 'store_unwritten_mail', request, locks: '' });
        }
        await tx
          .updateTable('unwrittenMail')
          .set({ attempts: 12, failures, dueAt: sql<Date>`now() + interval '1 second'` })
          .where('eventId', '=', created.eventId)
          .execute();
      });
      await eventually(async () => expect(await outcomes(participationId)).toMatchObject([first, { state: 'sent' }]));
      expect(received(email)).toEqual(expected);
    },
  );
});
