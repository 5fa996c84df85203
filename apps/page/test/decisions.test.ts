import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { confirmAddresses } from '@scheduling/testing';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Answer,
  basePath,
  book,
  type BookingUnderTest,
  cancelByCrm,
  owner,
  type PageUnderTest,
  setClock,
  startPage,
  whenServed,
} from './page-under-test.ts';

const { REQUESTED, BOOKED } = ParticipationState;
const { crmId } = owner;
const desk = 'hello@blum.example';

let page: PageUnderTest;
let providerId: string;
beforeAll(async () => {
  page = await startPage();
  const key = { $case: 'reference' as const, value: owner.providerReference };
  providerId = (await page.identity.getProvider({ crmId, key })).provider!.id;
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(() => setClock(page, '2031-05-28T08:00:00Z'));

interface Request extends BookingUnderTest {
  participationId: string;
  /** The page on which the provider decides. */
  decide: string;
}

async function request(): Promise<Request> {
  const booking = await book(page, { state: REQUESTED });
  const { id } = await page.participations.getParticipation({ ...owner, participationReference: booking.reference });
  return { ...booking, participationId: id, decide: await linkOf({ participationId: id }) };
}

async function linkOf(
  { participationId }: { participationId: string },
  recipientId = providerId,
  email = desk,
): Promise<string> {
  const { token } = await page.participations.issueDecisionLink({ crmId, participationId, recipientId, email });
  return `/decide/${token}`;
}

interface Member {
  id: string;
  reference: string;
  email: string;
  name: string;
}

/** Somebody with access to the provider and a confirmed address. */
async function addMember(): Promise<Member> {
  const reference = `member-${randomUUID()}`;
  const email = `${reference}@crm.example`;
  await page.identity.createUser({
    crmId,
    reference,
    email,
    username: reference,
    lastName: `Member ${reference.slice(-4)}`,
  });
  const { user } = await page.identity.addStaff({ ...owner, member: { $case: 'userReference', value: reference } });
  await confirmAddresses(page.services.identity, [email]);
  return { id: user!.id, reference, email, name: user!.lastName };
}

async function stateOf({ reference }: BookingUnderTest): Promise<{ state: string; actor?: string }> {
  const { json } = await page.participations.getParticipation({ ...owner, participationReference: reference });
  return JSON.parse(json.toString()) as { state: string };
}

const headers = { origin: 'https://book.example', 'sec-fetch-site': 'same-origin' };

/** What a button of the page does, as a browser sends it. */
function press({ body }: Answer, decision: string, message = ''): Promise<Answer> {
  const [, action = '', shown = ''] =
    /<form method="post" action="([^"]+)">\s*<input type="hidden" name="shown" value="([^"]+)">/.exec(body)!;
  return page.open(action.replace(basePath, ''), { form: { shown, decision, message }, headers });
}

describe('the page of a request', () => {
  it('shows who asks for what, and changes nothing', async () => {
    const asked = await request();
    const answer = await page.open(asked.decide);
    expect([answer.status, answer.heading]).toEqual([200, 'Confirm this request?']);
    for (const text of [
      'Ada Lovelace',
      'mailto:ada@example.com',
      'Massage &amp; more',
      '10:00',
      '1 of 1 free',
      'Lange Straße',
    ])
      expect(answer.body).toContain(text);
    expect(answer.body).not.toContain('We use your data');
    expect(await accessibilityFindings(answer.body)).toEqual([]);
    expect((await stateOf(asked)).state).toBe('REQUESTED');
    const german = await page.open(`${asked.decide}?lang=de`);
    expect(german.heading).toBe('Diese Anfrage bestätigen?');
    expect(await accessibilityFindings(german.body)).toEqual([]);
  });

  it.each([
    ['confirm', 'BOOKED', 'Confirmed'],
    ['decline', 'CANCELED', 'Declined'],
  ])('decides: %s', async (decision, state, heading) => {
    const asked = await request();
    const answer = await press(await page.open(asked.decide), decision, 'See you');
    expect([answer.status, answer.location]).toEqual([303, asked.decide]);
    expect((await stateOf(asked)).state).toBe(state);
    const after = await page.open(answer.location!);
    expect([after.status, after.heading]).toEqual([200, heading]);
    expect(after.body).toContain(`${heading} by Praxis &lt;Blum&gt; on`);
    // Only what was decided.
    for (const text of ['Ada Lovelace', 'ada@example.com', 'See you', '<form']) expect(after.body).not.toContain(text);
    expect(await accessibilityFindings(after.body)).toEqual([]);
  });

  it('asks again without a decision, for another start and for a message that is too long', async () => {
    const asked = await request();
    const question = await page.open(asked.decide);
    const message = `<i>${'🙂'.repeat(498)}`;
    for (const [answer, status, heading] of [
      [await press(question, ''), 400, 'Nothing was decided'],
      [await press(question, 'confirm', message), 400, 'Please check your message'],
      [
        await page.open(asked.decide, { form: { decision: 'confirm', shown: 'something else' }, headers }),
        409,
        'The appointment has been changed in the meantime',
      ],
    ] as const) {
      expect([answer.status, answer.heading]).toEqual([status, 'Confirm this request?']);
      expect(answer.body).toContain(`<h2>${heading}</h2>`);
      expect(await accessibilityFindings(answer.body)).toEqual([]);
    }
    expect((await stateOf(asked)).state).toBe('REQUESTED');
  });

  it('says what has become of it: withdrawn, confirmed by the CRM, or begun', async () => {
    const [withdrawn, confirmed, begun] = [await request(), await request(), await request()];
    const questions = await Promise.all([withdrawn, confirmed, begun].map(({ decide }) => page.open(decide)));
    await cancelByCrm(page, withdrawn.reference);
    await page.participations.updateParticipation({
      ...owner,
      participationReference: confirmed.reference,
      state: BOOKED,
      ignoreCapacity: false,
      sendMails: false,
    });
    const headings = ['Cancelled', 'Confirmed', 'Not decided in time'];
    for (const [index, asked] of [withdrawn, confirmed, begun].entries()) {
      if (asked === begun) await setClock(page, '2031-06-02T09:00:00Z');
      const before = await stateOf(asked);
      const late = await press(questions[index]!, 'confirm');
      expect([late.status, late.heading]).toEqual([409, headings[index]]);
      expect(late.body).toContain('Your decision came too late');
      expect((await page.open(asked.decide)).heading).toBe(headings[index]);
      expect(await stateOf(asked)).toEqual(before);
    }
  });

  it('offers to decline one for which no place is free any more', async () => {
    const asked = await request();
    const other = await page.participations.createParticipation({
      ...owner,
      reference: `other-${randomUUID()}`,
      appointmentReference: asked.appointmentReference,
      customerReference: await customer(),
      state: BOOKED,
      ignoreCapacity: false,
      onDuplicateRaise: false,
      sendMails: false,
    });
    expect(other.created).toBe(true);
    const question = await page.open(asked.decide);
    expect(question.body).toContain('0 of 1 free');
    const full = await press(question, 'confirm');
    expect([full.status, full.heading]).toEqual([409, 'Confirm this request?']);
    expect(full.body).toContain('No place is free any more');
    expect((await press(full, 'decline')).status).toBe(303);
    expect((await stateOf(asked)).state).toBe('CANCELED');
  });
});

async function customer(): Promise<string> {
  const customerReference = `customer-${randomUUID()}`;
  await page.customers.createCustomer({ ...owner, customerReference, userName: 'Bob', email: 'bob@example.com' });
  return customerReference;
}

describe('the link', () => {
  const isDead = async (path: string): Promise<void> => {
    const [dead, expected] = await Promise.all([page.open(path), page.open('/decide/unknown')]);
    expect([dead.status, dead.body]).toEqual([404, expected.body]);
    const posted = await page.open(path, { form: { decision: 'confirm' }, headers });
    expect([posted.status, posted.body]).toEqual([404, expected.body]);
  };

  it('is dead with any other bit, and for another purpose', async () => {
    const asked = await request();
    const token = Buffer.from(asked.decide.slice('/decide/'.length), 'base64url');
    for (let bit = 0; bit < token.length * 8; bit += 1) {
      const flipped = Buffer.from(token);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      const path = `/decide/${flipped.toString('base64url')}`;
      const answer = await page.open(path);
      expect(answer.status, `bit ${bit}`).toBe(404);
    }
    await isDead(asked.path.replace('/booking/', '/decide/'));
    const swapped = await page.open(asked.decide.replace('/decide/', '/booking/'));
    expect(swapped.status).toBe(404);
    expect((await stateOf(asked)).state).toBe('REQUESTED');
  });

  it('is dead for an address that the recipient does not have, and once a member of staff is removed', async () => {
    const asked = await request();
    const member = await addMember();
    await isDead(await linkOf(asked, providerId, 'other@blum.example'));
    await isDead(await linkOf(asked, member.id, 'other@blum.example'));
    await isDead(await linkOf(asked, randomUUID(), desk));
    const link = await linkOf(asked, member.id, member.email);
    expect((await page.open(link)).heading).toBe('Confirm this request?');
    await page.identity.removeStaff({ ...owner, userReference: member.reference });
    await isDead(link);
    expect((await stateOf(asked)).state).toBe('REQUESTED');
  });

  it('is dead once its person is gone', async () => {
    const asked = await request();
    await page.participations.updateParticipation({
      ...owner,
      participationReference: asked.reference,
      state: ParticipationState.CANCELED,
      ignoreCapacity: false,
      sendMails: false,
    });
    expect((await page.open(asked.decide)).heading).toBe('Cancelled');
    await setClock(page, '2031-07-03T08:00:00Z');
    await isDead(asked.decide);
  });

  it('of 50 members of staff decides once, and the others see who has', { timeout: 120_000 }, async () => {
    const asked = await request();
    const members: Member[] = [];
    for (let count = 0; count < 50; count += 1) members.push(await addMember());
    const links = await Promise.all(members.map(({ id, email }) => linkOf(asked, id, email)));
    const questions = await Promise.all(links.map((link) => whenServed(() => page.open(link))));
    const answers = await Promise.all(
      questions.map((question, index) => whenServed(() => press(question, index % 2 === 0 ? 'confirm' : 'decline'))),
    );
    const winners = members.filter((_member, index) => answers[index]!.status === 303);
    expect(winners).toHaveLength(1);
    const { state } = await stateOf(asked);
    const [heading, verb] = state === 'BOOKED' ? ['Confirmed', 'Confirmed'] : ['Declined', 'Declined'];
    for (const answer of answers.filter(({ status }) => status !== 303)) {
      expect([answer.status, answer.heading]).toEqual([409, heading]);
      expect(answer.body).toContain(`${verb} by ${winners[0]!.name} on`);
    }
  });

  it('of two requests for the last seat confirms one', async () => {
    const first = await request();
    const reference = `second-${randomUUID()}`;
    await page.participations.createParticipation({
      ...owner,
      reference,
      appointmentReference: first.appointmentReference,
      customerReference: await customer(),
      state: REQUESTED,
      ignoreCapacity: false,
      onDuplicateRaise: false,
      sendMails: false,
    });
    const { id } = await page.participations.getParticipation({ ...owner, participationReference: reference });
    const links = [first.decide, await linkOf({ participationId: id })];
    const questions = await Promise.all(links.map((link) => page.open(link)));
    for (const { body } of questions) expect(body).toContain('One more request for this time is waiting.');
    const answers = await Promise.all(questions.map((question) => press(question, 'confirm')));
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    const lost = answers.find(({ status }) => status === 409)!;
    expect(lost.body).toContain('No place is free any more');
  });
});
