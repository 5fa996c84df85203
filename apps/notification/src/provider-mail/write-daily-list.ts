import { databaseTime } from '@scheduling/delivery';
import { type ListDayResponse, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { undefinedIfNotFound } from '@scheduling/errors';
import { sql } from 'kysely';
import type { NotificationDependencies } from '../dependencies.ts';
import type { MailIntent } from '../mail/store-mail.ts';
import { composeDailyList, type DayAppointment } from './compose-daily-list.ts';
import type { ProviderNoticeRow } from './provider-notice-table.ts';
import { maxShown } from './write-provider-list.ts';
import { findProviderRecipient, intentOf } from './write-provider-mail.ts';

const { BOOKED, REQUESTED } = ParticipationState;

/** Somebody in a list, as an erasure names the person. */
export interface ListedPerson {
  customerId: string;
  participationId: string;
}

/**
 * Writes the list of a day from the present data. Undefined if the day is over, if there are no appointments any more,
 * or if the provider has no address.
 */
export async function writeDailyList(
  dependencies: NotificationDependencies,
  row: ProviderNoticeRow,
): Promise<{ mail: MailIntent; persons: ListedPerson[] } | undefined> {
  const { crmId, providerId } = row;
  const expiresAt = row.expiresAt!;
  if (expiresAt <= databaseTime(row)) return undefined;
  const day = await readDay(dependencies, row);
  if (day.appointments.length === 0) return undefined;
  const [recipient, { provider, crm }] = await Promise.all([
    findProviderRecipient(dependencies, row, undefined),
    dependencies.findSenders(crmId, providerId),
  ]);
  if (recipient === undefined) return undefined;
  const { senderAddress } = dependencies;
  const content = composeDailyList({
    ...day,
    date: row.day!,
    recipient,
    provider,
    crm,
    senderAddress,
    writtenAt: new Date(),
  });
  const persons = day.appointments.flatMap(({ participations }) =>
    participations.map(({ customerId, participationId }) => ({ customerId, participationId })),
  );
  return { mail: { ...intentOf(row, recipient, { content, sandbox: crm.sandbox }), expiresAt }, persons };
}

type Day = Omit<ListDayResponse, 'appointments'> & { appointments: DayAppointment[] };

/** Without those who are erased: calendar may still know them after its database was restored from a backup. */
async function readDay(dependencies: NotificationDependencies, row: ProviderNoticeRow): Promise<Day> {
  const { crmId, providerId } = row;
  const day = await undefinedIfNotFound(
    dependencies.participations.listDay({ crmId, providerId, date: row.day!, limit: maxShown }),
  );
  const { appointments = [], booked = 0, requested = 0, unlisted = 0 } = day ?? {};
  const named = appointments.map((appointment) => ({
    ...appointment,
    participations: appointment.participations.map((participation) => ({
      ...participation,
      customerId: participation.customerId ?? participation.participationId,
    })),
  }));
  const all = named.flatMap(({ participations }) => participations);
  const erased = await findErased(
    dependencies,
    crmId,
    all.map(({ customerId }) => customerId),
  );
  const gone = all.filter(({ customerId }) => erased.has(customerId));
  const ofState = (state: string): number => gone.filter((participation) => participation.state === state).length;
  return {
    appointments: named.map(({ participations, ...appointment }) => ({
      ...appointment,
      participations: participations.filter(({ customerId }) => !erased.has(customerId)),
    })),
    booked: booked - ofState(BOOKED),
    requested: requested - ofState(REQUESTED),
    unlisted,
  };
}

async function findErased(
  { database: { kysely } }: NotificationDependencies,
  crmId: string,
  customerIds: string[],
): Promise<Set<string>> {
  const rows = await kysely
    .selectFrom('erasedCustomer')
    .select('customerId')
    .where('crmId', '=', crmId)
    .where(sql<boolean>`customer_id = ANY(${customerIds}::uuid[])`)
    .execute();
  return new Set(rows.map(({ customerId }) => customerId));
}
