import type { SpokenLanguage } from '@scheduling/runtime';

/** How a visit ended. */
export interface OutcomeTexts {
  title: string;
  text: string;
}

/**
 * Texts of the verification page; `crm` is the name of the user's CRM. The hyphen in a German "E-Mail" is non-breaking.
 */
export interface VerificationTexts {
  confirm: { title: string; text: (crm: string) => string; button: string; unexpected: string };
  labels: { crm: string; name: string; email: string };
  confirmed: (crm: string) => OutcomeTexts;
  used: (crm: string) => OutcomeTexts;
  expired: (crm: string) => OutcomeTexts;
  unknown: OutcomeTexts;
  unavailable: OutcomeTexts;
}

export const verificationTexts: Record<SpokenLanguage, VerificationTexts> = {
  de: {
    confirm: {
      title: 'E‑Mail‑Adresse bestätigen',
      text: (crm) =>
        `Diese E‑Mail‑Adresse ist in einem Benutzerkonto bei ${crm} eingetragen. Bitte bestätigen Sie, dass sie Ihnen gehört.`,
      button: 'Adresse bestätigen',
      unexpected:
        'Sie kennen dieses Konto nicht? Dann schließen Sie diese Seite einfach: Ohne Ihre Bestätigung geschieht nichts.',
    },
    labels: { crm: 'Konto bei', name: 'Name', email: 'E-Mail-Adresse' },
    confirmed: (crm) => ({
      title: 'E‑Mail‑Adresse bestätigt',
      text: `Vielen Dank! Ihre E‑Mail‑Adresse für ${crm} ist bestätigt. Sie können diese Seite schließen.`,
    }),
    used: (crm) => ({
      title: 'Bereits bestätigt',
      text: `Mit diesem Link wurde die E‑Mail‑Adresse für ${crm} bereits bestätigt. Sie müssen nichts weiter tun.`,
    }),
    expired: (crm) => ({
      title: 'Link abgelaufen',
      text: `Dieser Link war 24 Stunden gültig und ist abgelaufen. ${crm} kann Ihnen einen neuen schicken. Bitte fragen Sie dort nach.`,
    }),
    unknown: {
      title: 'Link ungültig',
      text:
        'Diesen Link gibt es nicht, oder er wurde durch einen neueren ersetzt. Bitte verwenden Sie den Link aus der neuesten E‑Mail, oder bitten ' +
        'Sie den Absender der E‑Mail um einen neuen.',
    },
    unavailable: {
      title: 'Zurzeit nicht verfügbar',
      text: 'Der Dienst ist im Moment nicht erreichbar. Bitte versuchen Sie es in einigen Minuten noch einmal.',
    },
  },
  en: {
    confirm: {
      title: 'Confirm your email address',
      text: (crm) => `A user account with ${crm} uses this email address. Please confirm that it is yours.`,
      button: 'Confirm address',
      unexpected: 'Don’t recognise this account? Simply close this page: nothing happens unless you confirm.',
    },
    labels: { crm: 'Account with', name: 'Name', email: 'Email address' },
    confirmed: (crm) => ({
      title: 'Email address confirmed',
      text: `Thank you! Your email address for ${crm} is confirmed. You can close this page.`,
    }),
    used: (crm) => ({
      title: 'Already confirmed',
      text: `The email address for ${crm} has already been confirmed with this link. There is nothing left to do.`,
    }),
    expired: (crm) => ({
      title: 'Link expired',
      text: `This link was valid for 24 hours and has expired. Please ask ${crm} for a new one.`,
    }),
    unknown: {
      title: 'Link not valid',
      text: 'This link does not exist or has been replaced by a newer one. Please use the link in the most recent email, or ask its sender for a new one.',
    },
    unavailable: {
      title: 'Temporarily unavailable',
      text: 'The service is not available at the moment. Please try again in a few minutes.',
    },
  },
};
