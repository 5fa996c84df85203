import { loginRefusals } from './decide-after-failure.ts';

/** Why a mail has not been sent, as CRMs see it (interface 4.3). */
export type MailError =
  | 'address-rejected'
  | 'mail-rejected'
  | 'deferred'
  | 'server-unavailable'
  | 'uncertain'
  | 'recipient-quota'
  | 'crm-quota'
  | 'superseded';

/** What is recorded of attempts that ended without an answer of the mail server. */
const reasons: Record<string, MailError> = {
  'recipient-quota': 'recipient-quota',
  'crm-quota': 'crm-quota',
  superseded: 'superseded',
  // Another process continues with it.
  stopped: 'deferred',
  'lease lost': 'deferred',
  'not its turn': 'deferred',
};

/** The commands of SMTP that are about one mail, and not about the session. */
const mailCommand = /\b(MAIL FROM|RCPT TO|DATA|API)\b/;

/**
 * Coarser than what operators see (decide-after-failure.ts), because the codes of libraries and the replies of a mail
 * server are nothing to rely on.
 */
export function errorOfMail(lastError: string | null): MailError | undefined {
  if (lastError === null) return undefined;
  const known = reasons[lastError];
  if (known !== undefined) return known;
  if (lastError.startsWith('uncertain')) return 'uncertain';
  const command = mailCommand.exec(lastError)?.[1];
  const reply = Number(/ (\d{3})$/.exec(lastError)?.[1] ?? 0);
  if (command === undefined || loginRefusals.has(reply)) return 'server-unavailable';
  if (reply >= 400 && reply < 500) return 'deferred';
  // Nodemailer's name for what it checks itself before it sends anything: the address.
  return command === 'RCPT TO' || command === 'API' ? 'address-rejected' : 'mail-rejected';
}
