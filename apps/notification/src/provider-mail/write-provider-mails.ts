import { callFunction } from '@scheduling/postgres';
import { addressKey, type Logger } from '@scheduling/runtime';
import type { NotificationDependencies } from '../dependencies.ts';
import { recipientDigest } from '../mail/check-quotas.ts';
import { startWriting } from '../mail/start-writing.ts';
import { type MailIntent, requestOf } from '../mail/store-mail.ts';
import type { MailTimings } from '../mail/timings.ts';
import { type ProviderNoticeRow, providerNoticeTable } from './provider-notice-table.ts';
import { type ListedPerson, writeDailyList } from './write-daily-list.ts';
import { writeProviderList } from './write-provider-list.ts';
import { writeProviderMail } from './write-provider-mail.ts';

export interface ProviderMailWritingOptions {
  dependencies: NotificationDependencies;
  /** How many mails one recipient gets in an hour before the rest becomes a list; 0: any number. */
  quota: number;
  timings: MailTimings;
  logger: Logger;
}

interface Written {
  mail?: MailIntent | undefined;
  /** Of a list: all that it is about. */
  entryIds?: string[];
  /** Of the list of a day: who is in it. */
  persons?: ListedPerson[];
}

/** Writes the mails to providers. */
export function startProviderMailWriting({
  dependencies,
  quota,
  timings,
  logger,
}: ProviderMailWritingOptions): AsyncDisposable {
  const { kysely } = dependencies.database;
  const windowSeconds = timings.quotaWindowMs / 1_000;
  return startWriting<ProviderNoticeRow, Written>({
    database: dependencies.database,
    table: providerNoticeTable,
    write: async (row) => {
      if (row.template === 'provider-list') return writeProviderList(dependencies, row);
      if (row.template === 'provider-day') return writeDailyList(dependencies, row);
      const mail = await writeProviderMail(dependencies, row);
      return mail && { mail };
    },
    store: async ({ crmId, id, lease, customerId, createdAt, template }, written) => {
      const { mail, entryIds, persons } = written ?? {};
      const request = {
        crmId,
        id,
        lease,
        customerId: customerId ?? undefined,
        ...(mail && {
          mail: { ...requestOf(mail), id, createdAt },
          recipientDigest: digestOf(mail),
          recipientId: mail.userId ?? mail.providerId,
        }),
        persons,
        ...(entryIds === undefined ? { quota, windowSeconds } : { entryIds }),
      };
      const name =
        template === 'provider-day'
          ? 'store_daily_list'
          : entryIds === undefined
            ? 'store_provider_mail'
            : 'store_provider_list';
      await callFunction(kysely, { name, request, locks: `${crmId} ${customerId ?? id}` });
    },
    timings,
    logger,
  });
}

function digestOf({ crmId, content }: MailIntent): string {
  return recipientDigest({ crmId, recipient: addressKey(content.to.address) }).toString('hex');
}
