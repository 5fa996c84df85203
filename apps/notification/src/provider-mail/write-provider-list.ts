import type { ProviderRecipient } from '@scheduling/contracts/identity/v1';
import type { NotificationDependencies } from '../dependencies.ts';
import type { MailIntent } from '../mail/store-mail.ts';
import { composeProviderList, type ListEntry } from './compose-provider-list.ts';
import type { ProviderNoticeRow } from './provider-notice-table.ts';
import { findProviderRecipient, intentOf, readTold } from './write-provider-mail.ts';

/** A mail of more has too many bytes for some mail servers. */
const maxShown = 1_000;
const readAtOnce = 10;

/**
 * Writes the list of what one of a provider's recipients was not told by a mail of its own, from the present data. No
 * mail if there is no such recipient, or nothing left to tell.
 */
export async function writeProviderList(
  dependencies: NotificationDependencies,
  list: ProviderNoticeRow,
): Promise<{ mail: MailIntent | undefined; entryIds: string[] }> {
  const { crmId, id, providerId } = list;
  const rows = await dependencies.database.kysely
    .selectFrom('providerNotice')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('listId', '=', id)
    .orderBy('id')
    .execute();
  const entryIds = rows.map((row) => row.id);
  const entries = await readEntries(dependencies, rows.slice(0, maxShown) as ProviderNoticeRow[]);
  const recipient = await findRecipient(dependencies, list, entries);
  if (recipient === undefined) return { mail: undefined, entryIds };
  const { provider, crm } = await dependencies.findSenders(crmId, providerId);
  const { senderAddress } = dependencies;
  const unlisted = Math.max(0, rows.length - maxShown);
  const content = composeProviderList({ entries, unlisted, recipient, provider, crm, senderAddress });
  return { mail: intentOf(list, recipient, { content, sandbox: crm.sandbox }), entryIds };
}

/** In the order of their appointments. */
async function readEntries(dependencies: NotificationDependencies, rows: ProviderNoticeRow[]): Promise<ListEntry[]> {
  const entries: ListEntry[] = [];
  for (let from = 0; from < rows.length; from += readAtOnce) {
    const part = rows.slice(from, from + readAtOnce);
    const told = await Promise.all(part.map((row) => readTold(dependencies, row)));
    entries.push(
      ...part.flatMap(({ template, actor }, index) => (told[index] ? [{ template, actor, ...told[index] }] : [])),
    );
  }
  return entries.toSorted((one, other) => one.mailData.start!.getTime() - other.mailData.start!.getTime());
}

/** That of a contact is known by the appointments. */
async function findRecipient(
  dependencies: NotificationDependencies,
  list: ProviderNoticeRow,
  entries: ListEntry[],
): Promise<ProviderRecipient | undefined> {
  const contacts = new Set(entries.map(({ mailData }) => mailData.contactReference));
  for (const contact of contacts) {
    const recipient = await findProviderRecipient(dependencies, list, contact);
    if (recipient !== undefined) return recipient;
  }
  return undefined;
}
