import { type Mail, MailServiceService, MailState } from '@scheduling/contracts/notification/v1';
import { DomainError } from '@scheduling/errors';
import type { Database } from '@scheduling/postgres';
import { type HostedService, hostService } from '@scheduling/rpc';
import type { NotificationSchema } from './db/schema.ts';
import { type ListedMail, listMails } from './mail/list-mails.ts';

/** Protobuf to use cases and back. */
export function hostMailService(database: Database<NotificationSchema>): HostedService {
  return hostService(MailServiceService, {
    listMails: async ({ state }) => ({ mails: (await listMails(database, fromMessage(state))).map(toMessage) }),
  });
}

function fromMessage(state: MailState): ListedMail['state'] {
  switch (state) {
    case MailState.PENDING:
      return 'pending';
    case MailState.SENT:
      return 'sent';
    case MailState.FAILED:
    case MailState.UNSPECIFIED:
      return 'failed';
    case MailState.UNRECOGNIZED:
      throw new DomainError('mail.state_unknown');
    default:
      return state satisfies never;
  }
}

const states = { pending: MailState.PENDING, sent: MailState.SENT, failed: MailState.FAILED } as const;

function toMessage(row: ListedMail): Mail {
  return {
    crmId: row.crm_id,
    id: row.id,
    template: row.template,
    state: states[row.state],
    attempts: row.attempts,
    lastError: row.last_error ?? undefined,
    createdAt: row.created_at,
    finishedAt: row.finished_at ?? undefined,
    aboutId: row.about_id,
    requestId: row.request_id,
  };
}
