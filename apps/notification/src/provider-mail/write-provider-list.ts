import type { ProviderRecipient } from '@scheduling/contracts/identity/v1';
import { undefinedIfNotFound } from '@scheduling/errors';
import type { NotificationDependencies } from '../dependencies.ts';
import type { MailIntent } from '../mail/store-mail.ts';
import { composeProviderList } from './compose-provider-list.ts';
import type { ProviderNoticeRow } from './provider-notice-table.ts';
import { findProviderRecipient, intentOf, issueDecisionLink, readTold, type Told } from './write-provider-mail.ts';

/** A mail of more has too many bytes for some mail servers. */
export const maxShown = 1_000;
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
  const told = await readEntries(dependencies, rows.slice(0, maxShown) as ProviderNoticeRow[]);
  const recipient = told.length === 0 ? undefined : await findRecipient(dependencies, list);
  if (recipient === undefined) return { mail: undefined, entryIds };
  const entries = await inParts(told, async ({ row, ...entry }) => ({
    template: row.template,
    ...entry,
    link: await issueDecisionLink(dependencies, row, recipient),
  }));
  const { provider, crm } = await dependencies.findSenders(crmId, providerId);
  const { senderAddress } = dependencies;
  const unlisted = Math.max(0, rows.length - maxShown);
  const content = composeProviderList({
    entries,
    unlisted,
    recipient,
    provider,
    crm,
    senderAddress,
    writtenAt: new Date(),
  });
  return { mail: intentOf(list, recipient, { content, sandbox: crm.sandbox }), entryIds };
}

/** In the order of their appointments. */
async function readEntries(
  dependencies: NotificationDependencies,
  rows: ProviderNoticeRow[],
): Promise<(Told & { row: ProviderNoticeRow })[]> {
  const all = await inParts(rows, async (row) => {
    const told = await readTold(dependencies, row);
    return told && { row, ...told };
  });
  return all
    .filter((entry) => entry !== undefined)
    .toSorted((one, other) => one.mailData.start!.getTime() - other.mailData.start!.getTime());
}

async function inParts<Item, Result>(items: Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < items.length; from += readAtOnce)
    results.push(...(await Promise.all(items.slice(from, from + readAtOnce).map(work))));
  return results;
}

/** As identity knows the recipient now; undefined if it has no address any more, or no access. */
async function findRecipient(
  dependencies: NotificationDependencies,
  list: ProviderNoticeRow,
): Promise<ProviderRecipient | undefined> {
  const { crmId, providerId, recipientId } = list;
  // Its own address, or by now the owner's.
  if (recipientId === providerId)
    return findProviderRecipient(dependencies, { ...list, recipient: 'PROVIDER' }, undefined);
  const request = { crmId, providerId, recipientId: recipientId! };
  return (await undefinedIfNotFound(dependencies.identity.getProviderRecipient(request)))?.recipient;
}
