import { ParticipationState, SandboxClockServiceService } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause, type ParticipationUndecided } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { createClient } from '@scheduling/rpc';
import { eventually, longTimeout } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  crmId,
  type NotificationUnderTest,
  processed,
  providerReference,
  publishEvent,
  setUpProvider,
  startNotification,
} from './notification-under-test.ts';

const { REQUESTED, BOOKED, CANCELED } = ParticipationState;
const sandbox = 'sandbox';
const start = new Date('2030-07-01T10:00:00Z');
const hourMs = 3_600_000;
const desk = 'desk@yoga.example';

let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification();
  await setUpProvider(stack, sandbox, { sandbox: true });
  for (const crm of [crmId, sandbox]) {
    const owned = { crmId: crm, providerReference };
    await stack.bookings.updateBookingRules({ ...owned, noHorizon: false, notifyProvider: true });
  }
}, 180_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

interface Requested {
  owned: { crmId: string; providerReference: string };
  /** Also of the appointment and the customer. */
  reference: string;
  email: string;
  participationId: string;
  customerId: string;
  providerId: string;
}

async function createAppointment(owned: Requested['owned'], reference: string, at = start): Promise<void> {
  await stack.appointments.createAppointment({
    ...owned,
    reference,
    start: at.toISOString(),
    end: new Date(at.getTime() + hourMs).toISOString(),
    capacity: 1,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    description: reference,
    participations: [],
  });
}

async function ask(crm = crmId, sendMails = true): Promise<Requested> {
  const reference = `request-${(names += 1)}`;
  const owned = { crmId: crm, providerReference };
  const email = `${reference}@${crm}.example`;
  const { customer } = await stack.customers.createCustomer({
    ...owned,
    customerReference: reference,
    userName: reference,
    email,
    language: 'en',
  });
  await createAppointment(owned, reference);
  await stack.participations.createParticipation({
    ...owned,
    reference,
    appointmentReference: reference,
    customerReference: reference,
    state: REQUESTED,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails,
  });
  const { id } = await stack.participations.getParticipation({ ...owned, participationReference: reference });
  const { provider } = await stack.identity.getProvider({
    crmId: crm,
    key: { $case: 'reference', value: providerReference },
  });
  return { owned, reference, email, participationId: id, customerId: customer!.id, providerId: provider!.id };
}

/** Calendar says that it waits, and notification has heard it. */
async function say(
  { owned, participationId, providerId, customerId }: Requested,
  changes: Partial<ParticipationUndecided> = {},
): Promise<void> {
  const event = {
    crmId: owned.crmId,
    participationId,
    version: 1,
    providerId,
    customerId,
    start: '2030-07-01T10:00:00Z',
    expiresAt: '2030-07-01T10:00:00Z',
    remindProvider: true,
    tellPerson: true,
    ...changes,
  };
  const definition = events.participationUndecided;
  await processed(stack, definition, await publishEvent(stack, randomUUID(), definition, definition.encode(event)));
}

interface Told {
  person: string[];
  provider: string[];
}

/** How the subjects of all mails about it begin. */
function toldAbout({ email, reference }: Requested): Told {
  const subjectsTo = (address: string) =>
    stack.smtp.mails
      .filter(({ recipients, parsed }) => recipients.includes(address) && parsed.subject!.endsWith(`– ${reference}`))
      .map(({ parsed }) => parsed.subject!.replace(/: .*/, ''));
  return { person: subjectsTo(email), provider: subjectsTo(desk) };
}

/** That these mails arrive, and no others are on their way. */
async function expectTold(request: Requested, told: Told): Promise<void> {
  await eventually(() => expect(toldAbout(request)).toEqual(told));
  await settled();
  expect(toldAbout(request)).toEqual(told);
}

async function settled(): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql<{ waiting: number }>`
      SELECT (SELECT count(*) FROM provider_notice)::int + (SELECT count(*) FROM unwritten_mail)::int
           + (SELECT count(*) FROM mail WHERE state = 'pending')::int AS waiting`.execute(stack.database.kysely);
    expect(rows[0]!.waiting).toBe(0);
  });
}

const asked = { person: ['Your request'], provider: ['Neue Anfrage'] };

describe('a request that nobody decides', () => {
  it('is recalled to the provider and then to the person when it is time by the clock of the CRM, once', async () => {
    using clocks = createClient(SandboxClockServiceService, 'calendar', stack.services.calendar.address, longTimeout);
    const setClock = (hoursBefore: number) =>
      clocks.setSandboxClock({ crmId: sandbox, now: new Date(start.getTime() - hoursBefore * hourMs) });
    const kept = async (to: string, count: number) =>
      eventually(async () => {
        const { mails } = await stack.sandboxMails.listSandboxMails({ crmId: sandbox, limit: 20, to });
        expect(mails).toHaveLength(count);
        return mails;
      });
    await setClock(100);
    const request = await ask(sandbox);
    await kept(desk, 1);
    await setClock(49);
    const [reminder] = await kept(desk, 2);
    expect(reminder).toMatchObject({ template: 'provider-request-waiting', calendars: [] });
    expect(reminder!.subject).toMatch(new RegExp(`^Noch offen: .* – ${request.reference}$`));
    const [, token] = /https:\/\/page\.example\/decide\/([\w-]+)/.exec(reminder!.text)!;
    expect((await stack.decisions.getRequestedBooking({ token: token! })).booking).toMatchObject({ state: REQUESTED });
    await kept(request.email, 1);

    await setClock(11);
    const [told] = await kept(request.email, 2);
    expect(told).toMatchObject({ template: 'request-unconfirmed', calendars: [] });
    expect(told!.subject).toMatch(new RegExp(`^Not confirmed yet: .* – ${request.reference}$`));
    expect(told!.text).toContain('please do not come unless');
    expect(told!.text).toContain('please contact Yoga & Co: desk@yoga.example, +49 30 1');

    await setClock(60);
    await setClock(5);
    const other = await ask(sandbox);
    await setClock(2);
    await kept(other.email, 2);
    await kept(desk, 4);
    await kept(request.email, 2);
  });

  it('is one mail to each for one time, however often calendar says it', async () => {
    const request = await ask();
    await expectTold(request, asked);
    await say(request, { tellPerson: false });
    await expectTold(request, { ...asked, provider: ['Neue Anfrage', 'Noch offen'] });
    for (let times = 1; times <= 2; times += 1) {
      await say(request, { version: times });
      await expectTold(request, {
        person: ['Your request', 'Not confirmed yet'],
        provider: ['Neue Anfrage', 'Noch offen'],
      });
    }
  });

  const changeState = ({ owned, reference }: Requested, state: ParticipationState) =>
    stack.participations.updateParticipation({
      ...owned,
      participationReference: reference,
      state,
      ignoreCapacity: false,
      sendMails: false,
    });

  it.each([
    { what: 'confirmed', change: (request: Requested) => changeState(request, BOOKED) },
    { what: 'declined', change: (request: Requested) => changeState(request, CANCELED) },
    {
      what: 'for an appointment that is deleted',
      change: ({ owned, reference }: Requested) =>
        stack.appointments.deleteAppointments({
          ...owned,
          target: { $case: 'appointmentReference', value: reference },
        }),
    },
    {
      what: 'moved',
      change: async ({ owned, reference }: Requested) => {
        await createAppointment(owned, `${reference}-moved`, new Date(start.getTime() + hourMs));
        await stack.bookings.changeBooking({
          ...owned,
          participationReference: reference,
          place: { $case: 'appointmentReference', value: `${reference}-moved` },
          ignoreNotice: true,
          sendMails: false,
        });
      },
    },
    {
      what: 'for another time',
      change: ({ owned, reference }: Requested) =>
        stack.appointments.updateAppointment({
          ...owned,
          appointmentReference: reference,
          start: '2030-07-01T10:15:00Z',
          sendMails: false,
          noAddress: false,
        }),
    },
    {
      what: 'that of an erased person',
      change: ({ owned, reference }: Requested) =>
        stack.customers.deleteCustomer({ ...owned, customerReference: reference, ignoreFutureAppointments: true }),
    },
  ])('is not mentioned if it is $what by then', async ({ change }) => {
    const request = await ask();
    await expectTold(request, asked);
    await change(request);
    await say(request);
    await settled();
    const { person, provider } = toldAbout(request);
    expect(provider).toEqual(['Neue Anfrage']);
    expect(person).not.toContain('Not confirmed yet');
  });

  it('is told although its title has another text by then', async () => {
    const request = await ask();
    await expectTold(request, asked);
    await stack.appointments.updateAppointment({
      ...request.owned,
      appointmentReference: request.reference,
      description: `New – ${request.reference}`,
      sendMails: false,
      noAddress: false,
    });
    await say(request);
    await expectTold(request, {
      person: ['Your request', 'Not confirmed yet'],
      provider: ['Neue Anfrage', 'Noch offen'],
    });
  });

  it('is told after the mails about the request, in whichever order the events come', async () => {
    const [request, other] = [await ask(crmId, false), await ask()];
    // Any id in which the present time is.
    const previousMailEventId = other.participationId;
    await say(request, { previousMailEventId });
    await say(other);
    await eventually(() => expect(toldAbout(other)).toMatchObject({ person: ['Your request', 'Not confirmed yet'] }));
    expect(toldAbout(request)).toEqual({ person: [], provider: [] });

    const definition = events.participationChanged;
    const { participationId, providerId, customerId } = request;
    const change = definition.encode({
      crmId,
      participationId,
      version: 1,
      cause: ParticipationChangeCause.CREATED,
      fromState: ParticipationState.UNSPECIFIED,
      toState: REQUESTED,
      notify: true,
      notifyProvider: true,
      appointmentId: randomUUID(),
      providerId,
      customerId,
      actor: 'crm:test',
      neverInvited: false,
      exempt: false,
      ordinal: 2,
      previousOrdinal: 0,
      decided: false,
    });
    await publishEvent(stack, previousMailEventId, definition, change);
    await expectTold(request, {
      person: ['Your request', 'Not confirmed yet'],
      provider: ['Neue Anfrage', 'Noch offen'],
    });
  });

  it('is not told to the person if it is confirmed while the mail waits for the mail server', async () => {
    const request = await ask();
    await expectTold(request, asked);
    stack.smtp.trouble = (address) => (address === request.email ? { at: 'data', code: 451 } : undefined);
    await say(request, { remindProvider: false });
    const waiting = stack.database.kysely.updateTable('mail').where('aboutId', '=', request.participationId);
    // It is not being sent at the moment, and will not be until the other one waits.
    const postponed = waiting
      .set({ dueAt: sql`'infinity'` })
      .where('state', '=', 'pending')
      .where('attempts', '>', 0)
      .where('lease', 'is', null);
    await eventually(async () => expect((await postponed.executeTakeFirstOrThrow()).numUpdatedRows).toBe(1n));
    await stack.participations.updateParticipation({
      ...request.owned,
      participationReference: request.reference,
      state: BOOKED,
      ignoreCapacity: false,
      sendMails: true,
    });
    await eventually(async () =>
      expect(
        await stack.database.kysely
          .selectFrom('unwrittenMail')
          .select('id')
          .where('aboutId', '=', request.participationId)
          .execute(),
      ).toHaveLength(1),
    );
    stack.smtp.trouble = () => undefined;
    await waiting
      .set({ dueAt: sql`now()` })
      .where('state', '=', 'pending')
      .execute();
    await expectTold(request, { ...asked, person: ['Your request', 'Confirmed'] });
  });
});
