import type { ProviderKey } from '@scheduling/service';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { BookingRulesTable, CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { readEmbeddingOrigins } from './embedding-origins.ts';

/** How a provider can be booked. Notices are in minutes, the horizon in days of 24 hours. */
export type BookingRules = Omit<Selectable<BookingRulesTable>, 'crmId'>;

type Rules = Omit<BookingRules, 'providerId'>;

/** Whether mails have the person's link, which they have where there is a page unless a rule says otherwise. */
export function isSelfService({ selfService, page }: Pick<BookingRules, 'selfService' | 'page'>): boolean {
  return selfService ?? page;
}

interface ProviderId {
  crmId: string;
  providerId: string;
}

/** Those of the providers whose mails do not have the person's link. */
export async function listProvidersWithoutLink(
  { database }: CalendarDependencies,
  providers: readonly ProviderId[],
): Promise<ProviderId[]> {
  const [crmIds, providerIds] = [providers.map(({ crmId }) => crmId), providers.map(({ providerId }) => providerId)];
  const { rows } = await sql<ProviderId>`
    SELECT asked.crm_id, asked.provider_id
      FROM unnest(${crmIds}::text[], ${providerIds}::uuid[]) WITH ORDINALITY AS asked (crm_id, provider_id, number)
     WHERE NOT EXISTS (
       SELECT FROM booking_rules AS rules
        WHERE rules.crm_id = asked.crm_id AND rules.provider_id = asked.provider_id
          AND coalesce(rules.self_service, rules.page)
     )
     ORDER BY asked.number`.execute(database.kysely);
  return rows;
}

/** Of a provider that has not set any. */
const defaultRules: Rules = {
  minimumNotice: 0,
  horizon: null,
  changeNotice: 0,
  confirmation: 'BOOKED',
  page: false,
  reminders: [],
  notifyProvider: false,
  maxPerPerson: 3,
  selfService: null,
  offers: [],
  dailyList: null,
  askMobile: 'NO',
  verifyEmail: false,
  embedOn: [],
  access: 'PUBLIC',
};

/**
 * The rules of a provider, those that were not set by their defaults (interface 10.4). Rejects with
 * `provider.not_found`.
 */
export async function getBookingRules(dependencies: CalendarDependencies, key: ProviderKey): Promise<BookingRules> {
  const { id: providerId } = await requireProvider(dependencies, key);
  return (await findRules(dependencies.database.kysely, key.crmId, providerId)) ?? { ...defaultRules, providerId };
}

export type BookingRulesUpdate = ProviderKey & Partial<Rules>;

/** Sets the rules that are given (interface 10.4). Rejects with `provider.not_found` or `booking_rules.invalid`. */
export async function updateBookingRules(
  dependencies: CalendarDependencies,
  { crmId, providerReference, ...update }: BookingRulesUpdate,
): Promise<BookingRules> {
  const { id: providerId } = await requireProvider(dependencies, { crmId, providerReference });
  const given = { ...update, embedOn: update.embedOn && readEmbeddingOrigins(update.embedOn) };
  const first: Rules = { ...defaultRules, ...withoutAbsent(given) };
  return (
    dependencies.database.kysely
      .insertInto('bookingRules')
      .values({ ...first, crmId, providerId, offers: JSON.stringify(first.offers) })
      // At least one column.
      .onConflict((conflict) =>
        conflict
          .columns(['crmId', 'providerId'])
          .doUpdateSet({ ...given, crmId, offers: given.offers && JSON.stringify(given.offers) }),
      )
      .returning(columns)
      .executeTakeFirstOrThrow()
  );
}

const columns = [
  'providerId',
  'minimumNotice',
  'horizon',
  'changeNotice',
  'confirmation',
  'page',
  'reminders',
  'notifyProvider',
  'maxPerPerson',
  'selfService',
  'offers',
  'dailyList',
  'askMobile',
  'verifyEmail',
  'embedOn',
  'access',
] as const;

function findRules(db: Kysely<CalendarSchema>, crmId: string, providerId: string): Promise<BookingRules | undefined> {
  return db
    .selectFrom('bookingRules')
    .select(columns)
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .executeTakeFirst();
}

function withoutAbsent(rules: Partial<Rules>): Partial<Rules> {
  return Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined));
}
