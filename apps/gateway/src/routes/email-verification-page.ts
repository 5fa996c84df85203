import type { ConfirmVerificationResponse } from '@scheduling/contracts/identity/v1';
import type { SpokenLanguage } from '@scheduling/runtime';
import { Eta } from 'eta';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type OutcomeTexts, type VerificationTexts, verificationTexts } from './email-verification-texts.ts';

/** Whose address it is, and at which CRM. */
export type VerificationFacts = Omit<ConfirmVerificationResponse, 'language'>;

/** What became of a link that is known. */
export type LinkOutcome = 'confirmed' | 'used' | 'expired';

/** Asks the person to confirm with one button. */
export function confirmPage(verification: VerificationFacts, { token, language }: { token: string; language: SpokenLanguage }): string {
  const texts = verificationTexts[language];
  const { title, text, button, unexpected } = texts.confirm;
  return render(language, {
    title,
    text: text(verification.crmName),
    facts: describeFacts(verification, texts),
    form: { token, button, unexpected },
  });
}

/** Shows what became of a link. */
export function closedPage(outcome: LinkOutcome, verification: VerificationFacts, language: SpokenLanguage): string {
  const texts = verificationTexts[language];
  return render(language, { ...texts[outcome](verification.crmName), facts: describeFacts(verification, texts) });
}

/** Says why nothing can be said of a link. */
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

/** The blue is that of the mails. */
const style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1.125rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
main { max-width: 32rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
dl { margin: 1.5rem 0; padding: 1rem 1.25rem; border: 1px solid color-mix(in srgb, CanvasText 20%, Canvas); border-radius: .75rem; }
dt, .soft { font-size: .9375rem; color: color-mix(in srgb, CanvasText 70%, Canvas); }
dd { margin: 0 0 .75rem; font-weight: 600; }
dd:last-child { margin: 0; }
button { width: 100%; min-height: 3rem; margin-bottom: .5rem; border: 0; border-radius: .625rem; cursor: pointer; }
button { background: #2450c8; color: #fff; font: inherit; font-weight: 600; }
button:focus-visible { outline: 3px solid CanvasText; outline-offset: 3px; }
`;

/** Nothing is loaded or run but this style; the form goes back to where it came from. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

const eta = new Eta({ views: fileURLToPath(new URL('../templates', import.meta.url)), cache: true, autoEscape: true });

interface PageParts extends OutcomeTexts {
  facts: Fact[];
  form?: { token: string; button: string; unexpected: string };
}

/** Escapes every value. */
function render(language: SpokenLanguage, parts: PageParts): string {
  return eta.render('./email-verification', { language, style, ...parts });
}
