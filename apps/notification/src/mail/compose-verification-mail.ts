import type { Crm, IssueVerificationTokenResponse } from '@scheduling/contracts/identity/v1';
import { singleLine } from '@scheduling/presentation';
import type { MailContent } from '../db/schema.ts';
import { chooseLanguage } from '../language/language.ts';
import { automaticOf, brandOf, imprintsOf } from './brand.ts';
import { describeAdvice } from './describe-link.ts';
import { type MailParts, renderHtml, renderText } from './layout.ts';
import { senderOf } from './mail-addresses.ts';

export interface VerificationMail {
  verification: IssueVerificationTokenResponse;
  crm: Crm;
  senderAddress: string;
  publicUrl: string;
}

/** The mail with the link by which a person confirms an e-mail address. */
export function composeVerificationMail({
  verification,
  crm,
  senderAddress,
  publicUrl,
}: VerificationMail): MailContent {
  const user = verification.user!;
  const { texts, locale } = chooseLanguage(verification.language, crm.language);
  const name = singleLine([user.firstName, user.lastName].filter(Boolean).join(' '));
  const { subject, ...mail } = texts.mails['email-verification'];
  const crmName = singleLine(crm.name);
  const { labels, purpose, action, expiry, unexpected } = texts.verification;
  const parts: MailParts = {
    locale,
    tone: 'neutral',
    brand: brandOf(crm),
    subject: subject(crmName, ''),
    name: crmName,
    ...mail,
    greeting: texts.greeting(name),
    cause: purpose(crmName),
    facts: [
      { label: labels.crm, value: crmName },
      { label: labels.name, value: name },
      { label: labels.email, value: singleLine(user.email) },
    ],
    action: {
      label: action,
      url: verificationLink(publicUrl, verification.token),
      notes: [expiry, unexpected],
    },
    advice: describeAdvice({ name: crmName, impressum: crm.imprint }, texts.contact.questions, texts),
    contact: [],
    imprints: imprintsOf(crm),
    automatic: automaticOf(crm, { name: crmName }, texts),
    texts,
  };
  return {
    from: senderOf(crm, senderAddress),
    to: { name, address: user.email },
    language: locale,
    subject: parts.subject,
    text: renderText(parts),
    html: renderHtml(parts),
    calendars: [],
  };
}

function verificationLink(publicUrl: string, token: string): string {
  const link = new URL('/verify-email', publicUrl);
  link.searchParams.set('token', token);
  return link.href;
}
