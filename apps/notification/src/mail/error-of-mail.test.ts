import { expect, it } from 'vitest';
import { errorOfMail } from './error-of-mail.ts';

it.each([
  [null, undefined],
  ['EENVELOPE RCPT TO 550', 'address-rejected'],
  ['EENVELOPE API', 'address-rejected'],
  ['EENVELOPE MAIL FROM 550', 'mail-rejected'],
  ['EMESSAGE MAIL FROM', 'mail-rejected'],
  ['EMESSAGE DATA 554', 'mail-rejected'],
  ['EENVELOPE RCPT TO 450', 'deferred'],
  ['too late: EENVELOPE RCPT TO 451', 'deferred'],
  ['stopped', 'deferred'],
  ['lease lost', 'deferred'],
  ['not its turn', 'deferred'],
  ['ESOCKET CONN', 'server-unavailable'],
  ['EAUTH AUTH PLAIN 535', 'server-unavailable'],
  ['EENVELOPE MAIL FROM 530', 'server-unavailable'],
  ['ETLS STARTTLS', 'server-unavailable'],
  ['too late: ECONNECTION', 'server-unavailable'],
  ['unknown', 'server-unavailable'],
  ['uncertain: ECONNRESET', 'uncertain'],
  ['uncertain twice: ETIMEDOUT DATA', 'uncertain'],
  ['recipient-quota', 'recipient-quota'],
  ['crm-quota', 'crm-quota'],
  ['superseded', 'superseded'],
] as const)('%s is %s', (lastError, error) => {
  expect(errorOfMail(lastError)).toBe(error);
});
