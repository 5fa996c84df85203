import type { MailTemplate } from '@scheduling/runtime';

/** The texts of one mail. */
export interface MailTexts {
  /** `about` is the appointment's description, or the name of the provider or CRM. */
  subject: (about: string) => string;
  /** One or two words: the state of the booking. */
  status: string;
  headline: string;
  lead: string;
}

/** All texts of a language. */
export interface Texts {
  greeting: (name: string) => string;
  mails: Record<MailTemplate, MailTexts>;
  labels: { where: string; price: string; reference: string; message: (provider: string) => string };
  /** What was cancelled, and through which CRM if it is known. */
  cancelled: { booking: (crm: string | undefined) => string; appointment: (crm: string | undefined) => string };
  /** About the attached calendar file. */
  calendar: { invitation: string; cancellation: string };
  verification: {
    /** The person whose address is to be confirmed. */
    labels: { crm: string; name: string; email: string };
    action: string;
    /** What to do when the button does not work. */
    fallback: string;
    expiry: string;
    unexpected: string;
  };
  automatic: string;
}

/** An incomplete language: missing texts fall back to English. */
export type PartialTexts = {
  [Key in keyof Texts]?: Texts[Key] extends Record<string, unknown> ? PartialSection<Texts[Key]> : Texts[Key];
};
type PartialSection<Section> = {
  [Key in keyof Section]?: Section[Key] extends MailTexts ? Partial<Section[Key]> : Section[Key];
};
