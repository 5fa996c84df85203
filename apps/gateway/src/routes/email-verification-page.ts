import type { ConfirmVerificationResponse } from '@scheduling/contracts/identity/v1';
import type { SpokenLanguage } from '@scheduling/runtime';
import { renderPage } from '../html-page.ts';
import { type OutcomeTexts, type VerificationTexts, verificationTexts } from './email-verification-texts.ts';

/** Whose address it is, and at which CRM. */
export type VerificationFacts = Omit<ConfirmVerificationResponse, 'language'>;

/** The state of a known link. */
export type LinkOutcome = 'confirmed' | 'used' | 'expired';

/** Asks the person to confirm with one button. */
export function confirmPage(
  verification: VerificationFacts,
  { token, language }: { token: string; language: SpokenLanguage },
): string {
  const texts = verificationTexts[language];
  const { title, text, button, unexpected } = texts.confirm;
  return render(language, {
    title,
    text: text(verification.crmName),
    facts: describeFacts(verification, texts),
    form: { token, button, unexpected },
    imprint: verification.crmImprint,
  });
}

/** Shows the result of opening a link. */
export function closedPage(outcome: LinkOutcome, verification: VerificationFacts, language: SpokenLanguage): string {
  const texts = verificationTexts[language];
  return render(language, {
    ...texts[outcome](verification.crmName),
    facts: describeFacts(verification, texts),
    imprint: verification.crmImprint,
  });
}

/** Explains why nothing can be said about a link. */
export function failurePage(failure: 'unknown' | 'unavailable', language: SpokenLanguage): string {
  return render(language, { ...verificationTexts[language][failure], facts: [] });
}

interface Fact {
  label: string;
  value: string;
}

function describeFacts({ crmName, userName, email }: VerificationFacts, { labels }: VerificationTexts): Fact[] {
  return [
    { label: labels.crm, value: crmName },
    { label: labels.name, value: userName },
    { label: labels.email, value: email },
  ];
}

interface PageParts extends OutcomeTexts {
  facts: Fact[];
  form?: { token: string; button: string; unexpected: string };
  /** Of the CRM, with line breaks. */
  imprint?: string | undefined;
}

function render(language: SpokenLanguage, parts: PageParts): string {
  return renderPage('email-verification', { language, ...parts });
}
