import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { undefinedIfNotFound } from '@scheduling/errors';
import { nameUuid, type ProviderMailTemplate } from '@scheduling/runtime';
import type { ReceivedMail } from '@scheduling/testing';
import { crmId, providerReference, type Surroundings } from './notification-under-test.ts';
import type { Participation } from './random-changes.ts';

const { REQUESTED } = ParticipationState;

/** The address of the provider. */
export const desk = 'desk@yoga.example';

/** What the provider is told about a change of which the person is told by this mail. */
const toldWith: Record<string, ProviderMailTemplate> = {
  'booking-confirmed': 'provider-booked',
  'request-received': 'provider-requested',
  'booking-moved': 'provider-moved',
  'booking-cancelled': 'provider-cancelled',
};

/**
 * The provider is told of each of these changes once, by a mail of its own or in a list. Returns where that is not so,
 * and how many mails and entries of lists there are.
 */
export async function checkProviderMails(
  { database: { kysely }, participations: calendar }: Surroundings,
  participations: Participation[],
  mails: readonly ReceivedMail[],
): Promise<{ wrong: string[]; mails: number; entries: number }> {
  const templates = Object.values(toldWith);
  const written = await kysely
    .selectFrom('mail')
    .select(['aboutId', 'template', 'state', 'lastError'])
    .where('template', 'in', templates)
    .execute();
  const entries = await kysely
    .selectFrom('providerNotice')
    .select(['aboutId', 'template', 'state'])
    .where('template', 'in', templates)
    .execute();
  const told = Map.groupBy([...written, ...entries], ({ aboutId }) => aboutId);
  const wrong: string[] = [];
  for (const { reference, customer, state, mails: due } of participations) {
    // What has not been sent by then is erased with its person.
    if (customer === undefined || customer.isDeleted) continue;
    const key = { crmId, providerReference, participationReference: reference };
    const found = await undefinedIfNotFound(calendar.getParticipation(key));
    const actual = (told.get(found === undefined ? '' : nameUuid(found.id, 'PROVIDER')) ?? []).map(
      ({ template }) => template,
    );
    const expected = due
      .flatMap(({ template }) => toldWith[template] ?? [])
      // A request that is decided before the provider is told of it need not be decided any more.
      .filter((template) => template !== 'provider-requested' || state === REQUESTED || actual.includes(template));
    const [is, shouldBe] = [actual, expected].map((templates) => templates.toSorted().join(' '));
    if (is !== shouldBe) wrong.push(`${reference}: ${is} instead of ${shouldBe}`);
  }
  const sent = written.filter(({ state }) => state === 'sent').length;
  const unsent = written.filter(({ state, lastError }) => state !== 'sent' && lastError !== 'superseded');
  wrong.push(...unsent.map(({ aboutId, template, lastError }) => `${template} of ${aboutId}: ${lastError}`));
  const arrived = new Set(
    mails.filter(({ recipients }) => recipients.includes(desk)).map(({ parsed }) => parsed.messageId),
  );
  return { wrong, mails: Math.min(sent, arrived.size), entries: entries.length };
}
