import { createHash } from 'node:crypto';
import type { spokenLanguages } from './users.ts';

export type Language = (typeof spokenLanguages)[number];

export type VerificationOutcome = 'confirmed' | 'used' | 'expired' | 'unknown' | 'unavailable';

/** Asks the person to confirm with one button. */
export function confirmPage({ token, email, language }: { token: string; email: string; language: Language }): string {
  const { title, text, button } = confirmTexts[language];
  return page(
    language,
    title,
    `<p>${escapeHtml(text)}</p>
<p class="address">${escapeHtml(email)}</p>
<form method="post" action="verify-email">
<input type="hidden" name="token" value="${escapeHtml(token)}">
<button type="submit">${escapeHtml(button)}</button>
</form>`,
  );
}

/** Tells how it ended. */
export function outcomePage(outcome: VerificationOutcome, language: Language): string {
  const { title, text } = outcomeTexts[language][outcome];
  return page(language, title, `<p>${escapeHtml(text)}</p>`);
}

const style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1.125rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; }
main { max-width: 32rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
.address { font-weight: 600; overflow-wrap: anywhere; }
button { width: 100%; min-height: 3rem; margin-top: 1rem; border: 0; border-radius: .5rem; cursor: pointer; }
button { background: #0b57d0; color: #fff; font: inherit; font-weight: 600; }
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

function page(language: Language, title: string, content: string): string {
  return `<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${content}
</main>
</body>
</html>
`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character]!);
}

const confirmTexts: Record<Language, { title: string; text: string; button: string }> = {
  de: {
    title: 'E-Mail-Adresse bestätigen',
    text: 'Bitte bestätigen Sie, dass diese E-Mail-Adresse Ihnen gehört:',
    button: 'Adresse bestätigen',
  },
  en: {
    title: 'Confirm your e-mail address',
    text: 'Please confirm that this e-mail address is yours:',
    button: 'Confirm address',
  },
};

const outcomeTexts: Record<Language, Record<VerificationOutcome, { title: string; text: string }>> = {
  de: {
    confirmed: { title: 'Vielen Dank', text: 'Ihre E-Mail-Adresse ist bestätigt. Sie können diese Seite schließen.' },
    used: { title: 'Link bereits benutzt', text: 'Mit diesem Link wurde die E-Mail-Adresse bereits bestätigt. Es ist nichts weiter zu tun.' },
    expired: { title: 'Link abgelaufen', text: 'Dieser Link galt 24 Stunden und ist abgelaufen. Bitte lassen Sie sich einen neuen schicken.' },
    unknown: {
      title: 'Link ungültig',
      text: 'Diesen Link gibt es nicht, oder er wurde durch einen neueren ersetzt. Bitte benutzen Sie den Link aus der neuesten E-Mail.',
    },
    unavailable: { title: 'Gerade nicht möglich', text: 'Der Dienst antwortet im Moment nicht. Bitte versuchen Sie es in einigen Minuten noch einmal.' },
  },
  en: {
    confirmed: { title: 'Thank you', text: 'Your e-mail address is confirmed. You can close this page.' },
    used: { title: 'Link already used', text: 'The e-mail address was confirmed with this link before. There is nothing left to do.' },
    expired: { title: 'Link expired', text: 'This link was valid for 24 hours and has expired. Please ask for a new one.' },
    unknown: { title: 'Link not valid', text: 'This link does not exist, or a newer one has replaced it. Please use the link in the newest e-mail.' },
    unavailable: { title: 'Not possible right now', text: 'The service does not answer at the moment. Please try again in a few minutes.' },
  },
};
