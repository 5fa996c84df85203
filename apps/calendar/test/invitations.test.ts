import {
  Access,
  AskMobile,
  Confirmation,
  type Invitation,
  ParticipationState,
} from '@scheduling/contracts/calendar/v1';
import { eventually, patiently, withKey } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CalendarSchema } from '../src/db/schema.ts';
import { removeExpiredInvitations } from '../src/invitation/remove-expired-invitations.ts';
import { anonymiseParticipations } from '../src/participation/anonymise-participations.ts';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createCustomer,
  eventsOf,
  freshReference,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import {
  at,
  choose,
  createPage,
  listTimes,
  newOffer,
  newPageBooking,
  openTimeslot,
  type PageUnderTest,
  participationsOf,
  type RulesUnderTest,
  setRules,
} from './page-under-test.ts';

const { CANCELED } = ParticipationState;
const dayMs = 86_400_000;

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

/** A customer of a provider with a page of its own, who is invited. */
interface Guest {
  page: PageUnderTest;
  customerReference: string;
  invitation: Invitation;
}

const inDays = (days: number): string => new Date(Date.now() + days * dayMs).toISOString();

function invite(
  page: PageUnderTest,
  customerReference: string,
  overrides: { productReference?: string; bookings?: number; expiresAt?: string } = {},
) {
  const request = { ...page.owner, customerReference, productReference: 'product', bookings: 1, ...overrides };
  return patiently(() => calendar.invitations.createInvitation({ expiresAt: inDays(30), ...request }));
}

async function inviteSomebody(rules: RulesUnderTest = {}, bookings = 1): Promise<Guest> {
  const page = await createPage(calendar, rules);
  await openTimeslot(calendar, page, { defaultCapacity: 20 });
  const customerReference = await createCustomer(calendar, page.owner);
  const { invitation } = await invite(page, customerReference, { bookings });
  return { page, customerReference, invitation: invitation! };
}

/** As the page sends it: without who they are. */
const newGuestBooking = ({ page, invitation: { token } }: Guest, choice: string, start = at('10:00')) =>
  newPageBooking(page, { choice }, { name: '', email: '', language: '', invitation: token, start, note: 'On time.' });

const chooseAsGuest = ({ page, invitation: { token } }: Guest, start = at('10:00')) =>
  patiently(() =>
    calendar.pages.choosePageTime({
      providerId: page.providerId,
      offer: 'product',
      resourceReference: 'anna',
      start,
      invitation: token,
    }),
  );

async function bookAsGuest(guest: Guest, start = at('10:00')) {
  const { choice } = await chooseAsGuest(guest, start);
  return { choice, ...(await patiently(() => calendar.pages.bookPageTime(newGuestBooking(guest, choice, start)))) };
}

async function idOf({ page, customerReference }: Omit<Guest, 'invitation'>): Promise<string> {
  const key = { providerReference: page.owner.providerReference, customerReference };
  const { customer } = await calendar.customers.getCustomer({ crmId: 'one', key: { $case: 'reference', value: key } });
  return customer!.id;
}

const listInvitations = async ({ page, customerReference }: Guest) =>
  (await calendar.invitations.listInvitations({ ...page.owner, customerReference })).invitations;

async function idsOfBookings({ invitation }: Guest): Promise<string[]> {
  const bookings = calendar.database.kysely.selectFrom('invitationBooking').select('participationId');
  const rows = await bookings.where('invitationId', '=', invitation.id).execute();
  return rows.map(({ participationId }) => participationId);
}

const standing = async ({ page }: Guest) =>
  (await participationsOf(calendar, page)).filter(({ state }) => state === 'BOOKED' || state === 'REQUESTED');

/** Whoever books what is chosen has to wait. */
async function lockAppointmentOf(tx: Kysely<CalendarSchema>, choice: string): Promise<void> {
  await sql`
    SELECT FROM appointment WHERE crm_id = 'one' AND id IN (
      SELECT appointment_id FROM participation WHERE reference = ${`page-${choice}`}) FOR NO KEY UPDATE`.execute(tx);
}

/** All that a visitor can ask of a page, and what is answered: `ok`, or the code of the error. */
async function visit({ pages }: Calendar, { providerId }: PageUnderTest, invitation: string | undefined) {
  const wish = { providerId, offer: 'product', invitation };
  const choice = randomUUID();
  const place = { ...wish, resourceReference: 'anna', start: at('11:00'), choice };
  const person = { price: newOffer().price, name: 'A', email: 'a@a.example', language: 'en', stepUp: false };
  const calls = [
    () => pages.getBookingPage(wish),
    () => pages.listPageTimes({ ...wish, date: '2099-06-01' }),
    () => pages.listNearestPageTimes({ ...wish, start: at('11:00') }),
    () => pages.choosePageTime({ ...wish, start: at('11:00') }),
    () => pages.getPageChoice(place),
    () => pages.bookPageTime({ ...place, ...person }),
  ];
  const answers: string[] = [];
  for (const call of calls) {
    const answer = await patiently(call).then(
      () => 'ok',
      () => refusal(patiently(call)).then(({ code }) => code),
    );
    answers.push(answer);
  }
  return answers;
}

describe('an invitation', () => {
  it('books for its customer, who says nothing about themselves, with a mail', async () => {
    const guest = await inviteSomebody({ askMobile: AskMobile.REQUIRED, verifyEmail: true, maxPerPerson: 1 }, 2);
    const { page, customerReference } = guest;
    const { choice, receipt, pending } = await bookAsGuest(guest);
    expect(pending).toBe(false);
    const key = { ...page.owner, participationReference: `page-${choice}` };
    const { participation } = await calendar.participations.getParticipation(key);
    expect(participation).toMatchObject({ customerReference, email: 'person@example.com', note: 'On time.' });
    const events = await eventsOf(calendar, `page-${choice}`);
    expect(events.map(({ silent }) => silent)).toEqual([true, false]);
    const { providerId } = page;
    const shown = await calendar.pages.getPageBooking({ providerId, receipt, invitation: guest.invitation.token });
    expect(shown.booking).toMatchObject({ name: `Name of ${customerReference}`, maskedEmail: 'p***@example.com' });
    expect(shown.page!.invited).toEqual({
      name: `Name of ${customerReference}`,
      maskedEmail: 'p***@example.com',
      bookingsLeft: 1,
    });
    await bookAsGuest(guest, at('10:30'));
    expect(await listInvitations(guest)).toEqual([{ ...guest.invitation, booked: 2 }]);
  });

  it('has the offers of its product only', async () => {
    const others = [newOffer({ productReference: 'another' }), newOffer({ duration: 60 }), newOffer()];
    const guest = await inviteSomebody({ offers: others });
    const { providerId } = guest.page;
    const { page } = await calendar.pages.getBookingPage({ providerId, invitation: guest.invitation.token });
    expect(page!.offers.map(({ duration }) => duration)).toEqual([60, 30]);
    const wish = { providerId, offer: 'another', start: at('10:00') };
    await expect(calendar.pages.choosePageTime({ ...wish, invitation: guest.invitation.token })).rejects.toMatchObject({
      code: 'booking_page.offer_not_found',
    });
  });

  it('is for so many bookings and no more, however many are sent at the same time', async () => {
    const guest = await inviteSomebody({}, 3);
    const starts = (await listTimes(calendar, guest.page)).map(({ start }) => start!);
    const choices = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const start = starts[index % starts.length]!;
        return { start, choice: (await chooseAsGuest(guest, start)).choice };
      }),
    );
    const sent = await Promise.allSettled(
      choices.map(({ choice, start }) =>
        patiently(() => calendar.pages.bookPageTime(newGuestBooking(guest, choice, start))),
      ),
    );
    const refused = sent
      .filter((each) => each.status === 'rejected')
      .map(({ reason }) => (reason as { code: string }).code);
    expect(refused).toEqual(Array.from({ length: 9 }, () => 'booking_page.invitation_used'));
    expect(await standing(guest)).toHaveLength(3);
    expect((await refusal(chooseAsGuest(guest, at('11:30')))).code).toBe('booking_page.invitation_used');
  });

  it('is for no more if two are booked at once by two processes', async () => {
    const guest = await inviteSomebody();
    await using replica = await calendar.startReplica();
    const choices = [(await chooseAsGuest(guest)).choice, (await chooseAsGuest(guest)).choice];
    const tx = await calendar.database.kysely.startTransaction().execute();
    await lockAppointmentOf(tx, choices[0]!);
    const sent = [calendar, replica].map(({ pages }, index) =>
      patiently(() => pages.bookPageTime(newGuestBooking(guest, choices[index]!))),
    );
    await eventually(async () => expect(await countWaiting(calendar)).toBe(2));
    await tx.commit().execute();
    const refusals = (await Promise.allSettled(sent)).flatMap((each) =>
      each.status === 'rejected' ? [each.reason] : [],
    );
    expect(refusals).toEqual([expect.objectContaining({ code: 'booking_page.invitation_used' })]);
    expect(await standing(guest)).toHaveLength(1);
  });

  it('is one booking of a choice, and that of nobody else', async () => {
    const guest = await inviteSomebody();
    const { choice } = await chooseAsGuest(guest);
    const request = newGuestBooking(guest, choice);
    await allEnded(Array.from({ length: 8 }, () => patiently(() => calendar.pages.bookPageTime(request))));
    expect(await standing(guest)).toHaveLength(1);
    const stranger = newPageBooking(guest.page, { choice });
    expect((await refusal(calendar.pages.bookPageTime(stranger))).code).toBe('booking_page.choice_used');

    const another = await createCustomer(calendar, guest.page.owner);
    const { invitation } = await invite(guest.page, another);
    const own = await choose(calendar, guest.page, '11:00', { resourceReference: 'anna' });
    await calendar.pages.bookPageTime(newPageBooking(guest.page, { choice: own.choice }, { start: at('11:00') }));
    const stolen = newGuestBooking({ ...guest, invitation: invitation! }, own.choice, at('11:00'));
    expect((await refusal(calendar.pages.bookPageTime(stolen))).code).toBe('booking_page.choice_used');
  });

  it('can be used again for what was cancelled, twice within a day', async () => {
    const guest = await inviteSomebody();
    const cancel = async ({ choice }: { choice: string }) =>
      calendar.participations.updateParticipation({
        ...guest.page.owner,
        participationReference: `page-${choice}`,
        state: CANCELED,
        ignoreCapacity: false,
        sendMails: false,
      });
    await cancel(await bookAsGuest(guest));
    const second = await bookAsGuest(guest);
    expect((await refusal(bookAsGuest(guest))).code).toBe('booking_page.invitation_used');
    await cancel(second);
    expect(await listInvitations(guest)).toMatchObject([{ booked: 0 }]);
    expect((await refusal(chooseAsGuest(guest))).code).toBe('booking_page.limit_reached');
    const { choice } = await choose(calendar, guest.page, '10:00', { resourceReference: 'anna' });
    const sent = calendar.pages.bookPageTime(newGuestBooking(guest, choice));
    expect((await refusal(sent)).code).toBe('booking_page.limit_reached');
  });

  it('counts what has been anonymised, which does not lead to the customer any more', async () => {
    const guest = await inviteSomebody();
    await bookAsGuest(guest);
    const { database } = calendar;
    const [booked] = await idsOfBookings(guest);
    await database.transaction((tx) => anonymiseParticipations(tx, 'one', [booked!]));
    expect(await idsOfBookings(guest)).toEqual([]);
    expect(await listInvitations(guest)).toMatchObject([{ booked: 1 }]);
    expect((await refusal(bookAsGuest(guest))).code).toBe('booking_page.invitation_used');
    const { choice } = await choose(calendar, guest.page, '10:00', { resourceReference: 'anna' });
    const sent = calendar.pages.bookPageTime(newGuestBooking(guest, choice));
    expect((await refusal(sent)).code).toBe('booking_page.invitation_used');
  });

  it('counts requests where the provider decides', async () => {
    const guest = await inviteSomebody({ confirmation: Confirmation.REQUESTED });
    await bookAsGuest(guest);
    expect(await standing(guest)).toMatchObject([{ state: 'REQUESTED' }]);
    expect(await listInvitations(guest)).toMatchObject([{ booked: 1 }]);
  });

  it('is needed where the rules say so, but not for what was sent before', async () => {
    const guest = await inviteSomebody({}, 5);
    const { page, invitation } = guest;
    const { choice } = await choose(calendar, page, '10:00', { resourceReference: 'anna' });
    const { receipt } = await calendar.pages.bookPageTime(newPageBooking(page, { choice }));
    await setRules(calendar, page.owner, { access: Access.INVITED });
    expect(await visit(calendar, page, undefined)).toEqual(
      Array.from({ length: 6 }, () => 'booking_page.invited_only'),
    );
    expect(await visit(calendar, page, invitation.token)).toEqual(Array.from({ length: 6 }, () => 'ok'));
    await calendar.pages.getPageBooking({ providerId: page.providerId, receipt });
    await calendar.pages.getPageBooking({ providerId: page.providerId, receipt, invitation: 'dead' });
  });
});

describe('the link of an invitation', () => {
  const dead = Array.from({ length: 6 }, () => 'link.not_found');

  it('does not work if a bit of it was changed, or at the page of another provider', async () => {
    const guest = await inviteSomebody();
    const bytes = Buffer.from(guest.invitation.token, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      const invitation = changed.toString('base64url');
      const opened = calendar.pages.getBookingPage({ providerId: guest.page.providerId, invitation });
      expect((await refusal(patiently(() => opened))).code).toBe('link.not_found');
    }
    const another = await createPage(calendar);
    expect(await visit(calendar, another, guest.invitation.token)).toEqual(dead);
    const { link } = await participationLink(guest);
    expect(await visit(calendar, guest.page, link)).toEqual(dead);
    expect(await visit(calendar, guest.page, '')).toEqual(dead);
  });

  it('does not work when the customer has another address, and the list has another one', async () => {
    const guest = await inviteSomebody();
    const { page, customerReference, invitation } = guest;
    await calendar.customers.updateCustomer({ ...page.owner, customerReference, email: 'new@example.com' });
    expect(await visit(calendar, page, invitation.token)).toEqual(dead);
    const [listed] = await listInvitations(guest);
    expect(listed).toEqual({ ...invitation, token: expect.any(String) as string });
    expect(await visit(calendar, page, listed!.token)).toEqual(Array.from({ length: 6 }, () => 'ok'));
  });

  it('does not work when it has expired or was deleted', async () => {
    const guest = await inviteSomebody({}, 2);
    const { page, customerReference, invitation } = guest;
    await bookAsGuest(guest);
    await using later = await calendar.startReplicaAt('31 days');
    expect(await visit(later, page, invitation.token)).toEqual(dead);
    expect((await later.invitations.listInvitations({ ...page.owner, customerReference })).invitations).toEqual([]);
    const key = { ...page.owner, customerReference, invitationId: invitation.id };
    await calendar.invitations.deleteInvitation(key);
    expect((await refusal(calendar.invitations.deleteInvitation(key))).code).toBe('invitation.not_found');
    expect(await visit(calendar, page, invitation.token)).toEqual(dead);
    expect(await standing(guest)).toHaveLength(1);
  });

  it('does not work when calendar has forgotten the customer, whom the customer service is about to', async () => {
    const guest = await inviteSomebody();
    const { choice } = await chooseAsGuest(guest);
    const customerId = await idOf(guest);
    await calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true });
    expect((await refusal(calendar.pages.bookPageTime(newGuestBooking(guest, choice)))).code).toBe('link.not_found');
    expect(await visit(calendar, guest.page, guest.invitation.token)).toEqual(dead);
  });

  it('does not work when it is deleted at the very time when something is booked by it', async () => {
    const guest = await inviteSomebody();
    const { page, customerReference, invitation } = guest;
    const { choice } = await chooseAsGuest(guest);
    const tx = await calendar.database.kysely.startTransaction().execute();
    await lockAppointmentOf(tx, choice);
    const sent = calendar.pages.bookPageTime(newGuestBooking(guest, choice));
    await eventually(async () => expect(await countWaiting(calendar)).toBe(1));
    const deleted = calendar.invitations.deleteInvitation({
      ...page.owner,
      customerReference,
      invitationId: invitation.id,
    });
    await eventually(async () => expect(await countWaiting(calendar)).toBe(2));
    await tx.commit().execute();
    await allEnded<unknown>([sent, deleted]);
    expect(await standing(guest)).toHaveLength(1);
    expect(await visit(calendar, page, invitation.token)).toEqual(dead);
  });

  it('does not work when the customer is removed at the very time when something is booked by it', async () => {
    const guest = await inviteSomebody();
    const { choice } = await chooseAsGuest(guest);
    const customerId = await idOf(guest);
    const tx = await calendar.database.kysely.startTransaction().execute();
    await lockAppointmentOf(tx, choice);
    const sent = calendar.pages.bookPageTime(newGuestBooking(guest, choice));
    await eventually(async () => expect(await countWaiting(calendar)).toBe(1));
    await calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true });
    await tx.commit().execute();
    expect((await refusal(sent)).code).toBe('link.not_found');
    expect(await standing(guest)).toEqual([]);
  });

  it('is removed 30 days after it has expired, by both clocks', async () => {
    const { kysely } = calendar.database;
    const { invitation } = await inviteSomebody();
    const expireAt = (ahead: string) =>
      kysely
        .updateTable('invitation')
        .set({ expiresAt: sql<Date>`clock_timestamp() + ${ahead}::interval` })
        .where('id', '=', invitation.id)
        .execute();
    const isLeft = async () => {
      await removeExpiredInvitations(calendar.database, 100);
      const row = kysely.selectFrom('invitation').select('id').where('id', '=', invitation.id);
      return (await row.executeTakeFirst()) !== undefined;
    };
    const setAhead = (days: number) =>
      kysely
        .insertInto('sandboxClock')
        .values({ crmId: 'one', aheadMs: days * dayMs })
        .onConflict((conflict) => conflict.column('crmId').doUpdateSet({ aheadMs: days * dayMs }))
        .execute();
    try {
      await expireAt('-29 days');
      expect(await isLeft()).toBe(true);
      await setAhead(60);
      expect(await isLeft()).toBe(true);
      await expireAt('-31 days');
      await setAhead(-2);
      expect(await isLeft()).toBe(true);
      await setAhead(0);
      expect(await isLeft()).toBe(false);
    } finally {
      await kysely.deleteFrom('sandboxClock').where('crmId', '=', 'one').execute();
    }
  });

  it('books for nobody else, who has the reference of its customer by now', async () => {
    const guest = await inviteSomebody();
    const another = await inviteSomebody();
    const { kysely } = calendar.database;
    const rename = async (id: string, reference: string) =>
      kysely.updateTable('customer').set({ reference }).where('crmId', '=', 'one').where('id', '=', id).execute();
    const [id, anotherId] = [await idOf(guest), await idOf(another)];
    const { providerId } = await kysely
      .selectFrom('customer')
      .select('providerId')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const { choice } = await chooseAsGuest(guest);
    await rename(id, freshReference('customer'));
    await rename(anotherId, guest.customerReference);
    await kysely.updateTable('customer').set({ providerId }).where('id', '=', anotherId).execute();
    const sent = calendar.pages.bookPageTime(newGuestBooking(guest, choice));
    expect((await refusal(sent)).category).toBe('unavailable');
    expect(await participationsOf(calendar, guest.page)).toMatchObject([{ state: 'RESERVED', customerId: null }]);
  });

  it('is never left by an erasure that happens at the same time', async () => {
    const page = await createPage(calendar);
    const left: unknown[] = [];
    for (let round = 0; round < 8; round += 1) {
      const customerReference = await createCustomer(calendar, page.owner);
      await invite(page, customerReference);
      const customerId = await idOf({ page, customerReference });
      const removal = { crmId: 'one', customerId, ignoreFutureAppointments: true };
      await Promise.allSettled([
        invite(page, customerReference),
        calendar.removals.removeCustomer(removal),
        invite(page, customerReference),
      ]);
      const { kysely } = calendar.database;
      left.push(...(await kysely.selectFrom('invitation').select('id').where('customerId', '=', customerId).execute()));
    }
    expect(left).toEqual([]);
  });

  /** That of a booking. */
  async function participationLink(guest: Guest): Promise<{ link: string }> {
    const { choice } = await bookAsGuest(guest);
    const key = { ...guest.page.owner, participationReference: `page-${choice}` };
    return { link: (await calendar.participations.getParticipationLink(key)).token };
  }
});

describe('creating an invitation', () => {
  it('checks what it is for', async () => {
    const { page, customerReference } = await inviteSomebody();
    const pointersOf = async (overrides: Parameters<typeof invite>[2]) => {
      const { code, errors } = await refusal(invite(page, customerReference, overrides));
      return [code, ...errors.map(({ pointer }) => pointer)];
    };
    expect(await pointersOf({ productReference: 'none', bookings: 0, expiresAt: inDays(367) })).toEqual([
      'invitation.invalid',
      '/productReference',
      '/bookings',
      '/expiresAt',
    ]);
    expect(await pointersOf({ bookings: 101, expiresAt: inDays(-0.01) })).toEqual([
      'invitation.invalid',
      '/bookings',
      '/expiresAt',
    ]);
    expect((await invite(page, customerReference, { expiresAt: inDays(365.9) })).invitation!.booked).toBe(0);
    expect((await refusal(invite(page, 'nobody'))).code).toBe('customer.not_found');
    await setRules(calendar, page.owner, { page: false });
    expect((await refusal(invite(page, customerReference))).code).toBe('invitation.no_page');
    const elsewhere = await createPage(calendar);
    expect((await refusal(invite(elsewhere, customerReference))).code).toBe('customer.not_found');
  });

  it('is done once for a key, and answered as it is then', async () => {
    const guest = await inviteSomebody();
    const { page, customerReference } = guest;
    const request = {
      ...page.owner,
      customerReference,
      productReference: 'product',
      bookings: 2,
      expiresAt: inDays(3),
    };
    const key = randomUUID();
    const create = () => withKey(key, () => calendar.invitations.createInvitation(request));
    const customerId = await idOf(guest);
    const keys = calendar.database.kysely.selectFrom('idempotencyKey').select('resourceIds');
    const { invitation } = await create();
    expect((await create()).invitation).toEqual(invitation);
    expect(await listInvitations(guest)).toEqual([guest.invitation, invitation]);
    await calendar.invitations.deleteInvitation({ ...page.owner, customerReference, invitationId: invitation!.id });
    expect((await refusal(create())).code).toBe('invitation.not_found');
    const kept = async () => (await keys.execute()).flatMap(({ resourceIds }) => resourceIds);
    expect(await kept()).toContain(customerId);
    await calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true });
    expect(await kept()).not.toContain(customerId);
    expect(await kept()).not.toContain(invitation!.id);
  });

  it('is refused when the customer has 100, also at the same time', async () => {
    const guest = await inviteSomebody();
    const { kysely } = calendar.database;
    const row = await kysely
      .selectFrom('invitation')
      .selectAll()
      .where('id', '=', guest.invitation.id)
      .executeTakeFirstOrThrow();
    const more = Array.from({ length: 97 }, () => ({ ...row, id: randomUUID() }));
    await kysely.insertInto('invitation').values(more).execute();
    const sent = await Promise.allSettled(Array.from({ length: 6 }, () => invite(guest.page, guest.customerReference)));
    expect(sent.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect((await refusal(invite(guest.page, guest.customerReference))).code).toBe('invitation.limit_reached');
  });
});
