import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { idCursor, readCursor } from '@scheduling/runtime';
import { type Selectable, sql } from 'kysely';
import type { SandboxMailTable } from '../db/schema.ts';
import type { NotificationDependencies } from '../dependencies.ts';

export interface SandboxMailsQuery {
  crmId: string;
  /** Only those to this address, in any of its forms. */
  to?: string | undefined;
  limit: number;
  cursor?: string | undefined;
}

export interface SandboxMail extends Selectable<SandboxMailTable> {
  template: string;
}

/**
 * The mails that a sandbox keeps, in the opposite order of their creation (interface 11.2). `nextCursor` is undefined
 * on the last page. Rejects with `sandbox.not_found` for a CRM that is not a sandbox, or with `sandbox.invalid` for an
 * unknown cursor.
 */
export async function listSandboxMails(
  { database, identity }: NotificationDependencies,
  { crmId, to, limit, cursor }: SandboxMailsQuery,
): Promise<{ mails: SandboxMail[]; nextCursor?: string | undefined }> {
  const { crm } = await identity.getCrm({ crmId });
  if (!crm!.sandbox) throw new DomainError('sandbox.not_found');
  const errors = collectFieldErrors();
  const after = readCursor(idCursor, cursor, errors);
  errors.throwIfAny('sandbox.invalid');
  const rows = await database.kysely
    .selectFrom('sandboxMail')
    .innerJoin('mail', (join) =>
      join.onRef('mail.crmId', '=', 'sandboxMail.crmId').onRef('mail.id', '=', 'sandboxMail.mailId'),
    )
    .selectAll('sandboxMail')
    .select('mail.template')
    .where('sandboxMail.crmId', '=', crmId)
    .$if(to !== undefined, (query) => query.where('sandboxMail.recipient', '=', sql<string>`address_key(${to})`))
    .$if(after !== undefined, (query) => query.where('mailId', '<', after!))
    // An id begins with the time.
    .orderBy('mailId', 'desc')
    .limit(limit + 1)
    .execute();
  const mails = rows.slice(0, limit);
  return { mails, nextCursor: rows.length > limit ? idCursor.encode(mails.at(-1)!.mailId) : undefined };
}
