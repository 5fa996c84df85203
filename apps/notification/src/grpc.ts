import {
  type Mail,
  MailServiceService,
  MailState,
  type ParticipationMail as ParticipationMailMessage,
  ParticipationMailServiceService,
  type SandboxMail as SandboxMailMessage,
  SandboxMailServiceService,
} from '@scheduling/contracts/notification/v1';
import { DomainError } from '@scheduling/errors';
import type { Database } from '@scheduling/postgres';
import { type HostedService, hostOperatorService, hostService, withoutNulls } from '@scheduling/rpc';
import { callers } from './callers.ts';
import type { NotificationSchema } from './db/schema.ts';
import type { NotificationDependencies } from './dependencies.ts';
import { type ListedMail, listMails } from './mail/list-mails.ts';
import { listParticipationMails } from './mail/list-participation-mails.ts';
import type { ParticipationMail } from './mail/participation-mail.ts';
import { resendMail } from './mail/resend-mail.ts';
import { listSandboxMails, type SandboxMail } from './sandbox/list-sandbox-mails.ts';

/** Maps protobuf messages to the use cases and back. */
export function hostParticipationMailService(dependencies: NotificationDependencies): HostedService {
  return hostService(ParticipationMailServiceService, callers.ParticipationMailService, {
    listParticipationMails: async (request) => ({
      mails: (await listParticipationMails(dependencies, request)).map(toParticipationMailMessage),
    }),
    resendMail: async (request) => ({ mail: toParticipationMailMessage(await resendMail(dependencies, request)) }),
  });
}

export function hostSandboxMailService(dependencies: NotificationDependencies): HostedService {
  return hostService(SandboxMailServiceService, callers.SandboxMailService, {
    listSandboxMails: async (request) => {
      const { mails, nextCursor } = await listSandboxMails(dependencies, request);
      return { mails: mails.map(toSandboxMailMessage), nextCursor };
    },
  });
}

export function hostMailService(database: Database<NotificationSchema>): HostedService {
  return hostOperatorService(MailServiceService, {
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
  return { ...withoutNulls(row), state: states[row.state] };
}

function toParticipationMailMessage({ finishedAt, ...mail }: ParticipationMail): ParticipationMailMessage {
  return { ...mail, finishedAt: finishedAt ?? undefined, state: states[mail.state] };
}

function toSandboxMailMessage({ mailId: id, template, sentAt, content }: SandboxMail): SandboxMailMessage {
  const { from, to, replyTo, subject, text, html, calendars } = content;
  return { id, template, sentAt, from, to, replyTo, subject, text, html, calendars };
}
