import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { eventually, longTimeout, startTestNats, sumSamples, whilePaused, withKey } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newAppointment,
  newParticipation,
  refusal,
  startCalendarBeside,
} from './calendar-under-test.ts';
import { createCrm, type Neighbours, startNeighbours } from './neighbours.ts';

const { BOOKED, CANCELED, REQUESTED } = ParticipationState;
const stack = new AsyncDisposableStack();
let neighbours: Neighbours;
let calendar: CalendarUnderTest;

/** With its own identity service: the CRMs of this file have settings of their own, and it is stopped. */
beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  neighbours = stack.use(await startNeighbours(nats.url));
  calendar = stack.use(
    await startCalendarBeside(
      { identity: neighbours.identity.address, customer: neighbours.customer.address },
      nats.url('calendar'),
    ),
  );
}, 180_000);
afterAll(() => stack.disposeAsync());

const day = 24 * 60 * 60;
/** All appointments of this file end then or 10 minutes later, so for the calendar under test they are not over. */
const end = new Date(Math.ceil(Date.now() / 60_000) * 60_000 + 6 * 60 * 60 * 1_000);
const tenMinutesLater = new Date(end.getTime() + 600_000);

/**
 * A replica whose clock shows this many days after the end, or little more. It does what is due as soon as it has
 * started.
 */
function startDaysLater(days: number, settings: Record<string, string> = {}) {
  const seconds = Math.ceil((end.getTime() - Date.now()) / 1_000) + days * day;
  return calendar.startReplicaAt(`${seconds} seconds`, settings);
}

interface Owner {
  crmId: string;
  providerReference: string;
}

async function newCrm(anonymiseAfterDays?: number): Promise<Owner> {
  const crmId = `crm-${randomUUID()}`;
  await createCrm(neighbours.identity, { crmId, anonymiseAfterDays }, ['p1']);
  return { crmId, providerReference: 'p1' };
}

async function changePeriod({ crmId }: Owner, anonymiseAfterDays: number): Promise<void> {
  using admin = createClient(AdminServiceService, 'identity', neighbours.identity.adminAddress, longTimeout);
  await admin.updateCrm({ crmId, anonymiseAfterDays });
}

const contact = { name: 'Canary', email: 'canary@example.com', mobile: '+49 1', note: 'Canary' };
const embedded = () => ({ ...contact, reference: freshReference('embedded'), state: BOOKED });

function appointmentUntil(owner: Owner, until: Date, persons = 1) {
  const participations = Array.from({ length: persons }, embedded);
  const period = { start: new Date(until.getTime() - 3_600_000).toISOString(), end: until.toISOString() };
  return newAppointment({ ...owner, ...period, capacity: persons + 5, acceptBookings: true, participations });
}

/** Creates an appointment with embedded participations and returns its reference. */
function create(owner: Owner, until = end, persons = 1): Promise<string> {
  return createAppointment(calendar, appointmentUntil(owner, until, persons));
}

async function book(owner: Owner, appointmentReference: string, state: ParticipationState = BOOKED): Promise<string> {
  const customerReference = await createCustomer(calendar, owner);
  const request = newParticipation({ appointmentReference, customerReference }, { ...owner, state, message: 'Canary' });
  await calendar.participations.createParticipation(request);
  return request.reference;
}

interface Participation {
  reference: string;
  name: string;
  messages: string[] | null;
}

async function participationsOf(owner: Owner, appointmentReference: string): Promise<Participation[]> {
  const { json } = await calendar.appointments.getAppointment({ ...owner, appointmentReference });
  return (JSON.parse(json.toString()) as { participations: Participation[] }).participations;
}

const anonymousReference = expect.stringMatching(/^anonymous-/) as string;
const anonymous = {
  reference: anonymousReference,
  customerReference: null,
  name: '',
  email: null,
  mobile: null,
  note: null,
  messages: null,
  metadata: null,
  noShow: false,
};

async function isAnonymous(owner: Owner, appointmentReference: string): Promise<boolean> {
  const participations = await participationsOf(owner, appointmentReference);
  return participations.every(
    ({ name, reference, messages }) => name === '' && reference.startsWith('anonymous-') && messages === null,
  );
}

/** Waits until an appointment has been anonymised. What the same run did, or did not, can be checked afterwards. */
async function waitForRun(owner: Owner, appointmentReference: string): Promise<void> {
  await eventually(async () => expect(await isAnonymous(owner, appointmentReference)).toBe(true));
}

describe('the retention period of a CRM', () => {
  it('anonymises embedded and booked participations of appointments that ended that long ago, and no later ones, nor those of other CRMs', async () => {
    const [owner, never] = [await newCrm(30), await newCrm()];
    const [due, later] = [await create(owner), await create(owner, tenMinutesLater)];
    await book(owner, due);
    const kept = await create(never);
    await book(never, kept);
    await using _ = await startDaysLater(30);
    await waitForRun(owner, due);
    expect(await participationsOf(owner, due)).toMatchObject([
      { ...anonymous, state: 'BOOKED' },
      { ...anonymous, state: 'BOOKED' },
    ]);
    expect(await participationsOf(owner, later)).toMatchObject([
      { name: 'Canary', email: 'canary@example.com', note: 'Canary' },
    ]);
    expect(await participationsOf(never, kept)).toMatchObject([
      { name: 'Canary' },
      { email: 'person@example.com', messages: ['Canary'] },
    ]);
  });

  it('applies if it is lower than the one for all CRMs, which applies otherwise', async () => {
    const [lower, higher, none] = [await newCrm(10), await newCrm(30), await newCrm()];
    const all = [lower, higher, none];
    const due = await Promise.all(all.map((owner) => create(owner)));
    const later = await Promise.all(all.map((owner) => create(owner, tenMinutesLater)));
    const states = (references: string[]) =>
      Promise.all(all.map((owner, index) => isAnonymous(owner, references[index]!)));
    {
      await using _ = await startDaysLater(10, { ANONYMISE_AFTER_DAYS: '20' });
      await waitForRun(lower, due[0]!);
      expect(await states(due)).toEqual([true, false, false]);
      expect(await states(later)).toEqual([false, false, false]);
    }
    await using _ = await startDaysLater(20, { ANONYMISE_AFTER_DAYS: '20' });
    await waitForRun(none, due[2]!);
    expect(await states(due)).toEqual([true, true, true]);
    expect(await states(later)).toEqual([true, false, false]);
  });

  it('takes effect when it is set later, and ends when it is cleared', async () => {
    const [changed, cleared, control] = [await newCrm(), await newCrm(1), await newCrm(1)];
    const [first, second, third] = [await create(changed), await create(cleared), await create(control)];
    await changePeriod(cleared, 0);
    {
      await using _ = await startDaysLater(1);
      await waitForRun(control, third);
      expect(await isAnonymous(changed, first)).toBe(false);
    }
    await changePeriod(changed, 1);
    await using _ = await startDaysLater(1);
    await waitForRun(changed, first);
    expect(await isAnonymous(cleared, second)).toBe(false);
  });

  it('waits for identity while it does not respond', async () => {
    const owner = await newCrm(1);
    const due = await create(owner);
    const samples = { rpc_method: 'ListRetentionPeriods', rpc_status: 'DEADLINE_EXCEEDED' };
    const replica = await whilePaused([neighbours.identity.pid], async () => {
      const started = await startDaysLater(1);
      await eventually(async () =>
        expect(sumSamples(await started.scrape(), 'rpc_client_duration_seconds_count', samples)).toBeGreaterThan(0),
      );
      return started;
    });
    await using _ = replica;
    await waitForRun(owner, due);
  });
});

describe('anonymisation', () => {
  it('leaves nothing that leads to the person, and keeps the seats', async () => {
    const owner = await newCrm(1);
    const request = appointmentUntil(owner, end);
    await withKey('create', () => calendar.appointments.createAppointment(request));
    const customerReference = await createCustomer(calendar, owner);
    const booking = newParticipation({ appointmentReference: request.reference, customerReference }, { ...owner });
    await withKey('book', () => calendar.participations.createParticipation(booking));
    const change = {
      appointmentReference: request.reference,
      description: 'Canary',
      noAddress: false,
      sendMails: true,
    };
    await calendar.appointments.updateAppointment({ ...owner, ...change });
    const { kysely } = calendar.database;
    const selectPrevious = kysely
      .selectFrom('participationPrevious')
      .select('version')
      .where('crmId', '=', owner.crmId);
    expect(await selectPrevious.execute()).toHaveLength(2);
    await using _ = await startDaysLater(1);
    await waitForRun(owner, request.reference);
    expect(await selectPrevious.execute()).toEqual([]);
    expect(await kysely.selectFrom('idempotencyKey').selectAll().where('crmId', '=', owner.crmId).execute()).toEqual(
      [],
    );
    expect(
      await kysely.selectFrom('appointment').select('contentDigest').where('crmId', '=', owner.crmId).execute(),
    ).toEqual([{ contentDigest: Buffer.alloc(0) }]);
    expect(await kysely.selectFrom('appointment').select('taken').where('crmId', '=', owner.crmId).execute()).toEqual([
      { taken: 2 },
    ]);
    expect(await refusal(calendar.appointments.createAppointment(request))).toMatchObject({
      code: 'appointment.reference_taken',
    });
  });

  it('includes what is written to an appointment after it was anonymised', async () => {
    const owner = await newCrm(1);
    const all = [await create(owner), await create(owner), await create(owner), await create(owner)] as const;
    const [booked, requested, joined, cancelled] = all;
    {
      await using _ = await startDaysLater(1);
      for (const reference of all) await waitForRun(owner, reference);
    }
    await book(owner, booked);
    await book(owner, requested, REQUESTED);
    const participationReference = await book(owner, await create(owner, tenMinutesLater));
    const place = { $case: 'appointmentReference' as const, value: joined };
    await calendar.bookings.changeBooking({
      ...owner,
      participationReference,
      place,
      ignoreNotice: true,
      sendMails: true,
    });
    const [participation] = await participationsOf(owner, cancelled);
    const move = {
      participationReference: participation!.reference,
      state: CANCELED,
      message: 'Canary',
      ignoreCapacity: false,
      sendMails: true,
    };
    await calendar.participations.updateParticipation({ ...owner, ...move });
    for (const reference of all) expect(await isAnonymous(owner, reference)).toBe(false);
    await using _ = await startDaysLater(1);
    for (const reference of all) await waitForRun(owner, reference);
  });

  it('of more participations than a batch has is complete, whichever replicas take part', async () => {
    const owner = await newCrm(1);
    const sizes = [400, 400, ...Array.from({ length: 40 }, () => 5)];
    const references = await Promise.all(sizes.map((persons) => create(owner, end, persons)));
    await using replicas = new AsyncDisposableStack();
    await Promise.all([1, 2, 3].map(async () => replicas.use(await startDaysLater(1))));
    for (const reference of references) await waitForRun(owner, reference);
    const { kysely } = calendar.database;
    const unmarked = () =>
      kysely
        .selectFrom('appointment')
        .select('reference')
        .where('crmId', '=', owner.crmId)
        .where('anonymised', '=', false)
        .execute();
    await eventually(async () => expect(await unmarked()).toEqual([]));
  });
});

it('causes no deadlock', async () => {
  expect(await calendar.countDeadlocks()).toBe(0);
});
