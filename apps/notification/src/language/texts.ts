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
  labels: {
    where: string;
    price: string;
    reference: string;
    message: (provider: string) => string;
    /** Of what the person has written to the provider. */
    ownMessage: (provider: string) => string;
  };
  /** What was cancelled, and through which CRM if it is known. */
  cancelled: {
    booking: (crm: string | undefined) => string;
    appointment: (crm: string | undefined) => string;
    /** By the person. */
    byYourself: string;
  };
  /** The person's link. */
  link: {
    booking: LinkTexts;
    request: LinkTexts;
    /** By which the person says so. */
    attend: string;
  };
  /** Whom to ask: the provider's address and numbers follow. */
  contact: {
    /** When the link no longer changes anything, */
    later: (provider: string) => string;
    /** and before that if it only cancels. */
    laterOrToMove: (provider: string) => string;
    /** Where no link changes anything. */
    toChange: (provider: string) => string;
    /** About what has ended. */
    questions: (provider: string) => string;
  };
  /** About the attached calendar file. */
  calendar: {
    invitation: string;
    /** Of an event that may be in the calendar already. */
    update: string;
    cancellation: string;
    /** What an answer to the invitation does not do. */
    declining: string;
  };
  /** In mails to providers. */
  provider: {
    labels: {
      name: string;
      phone: string;
      email: string;
      note: string;
      message: (person: string) => string;
      /** What the CRM has sent to the person. */
      messageToPerson: string;
    };
    /** The link to decide a request, and until when it works. */
    decide: string;
    decideUntil: (start: string) => string;
    /** Who did it. */
    byPerson: string;
    throughCrm: (crm: string) => string;
    /** What a list does not show. */
    unlisted: (count: number) => string;
    /** Why the recipient gets these mails, and who can stop them. */
    reason: (provider: string, crm: string) => string;
  };
  verification: {
    /** The person whose address is to be confirmed. */
    labels: { crm: string; name: string; email: string };
    action: string;
    expiry: string;
    unexpected: string;
  };
  /** What to do when the button of a link does not work. */
  fallback: string;
  automatic: string;
}

/** What the link to a booking or a request is for, and until when it can be cancelled. */
export interface LinkTexts {
  view: string;
  cancel: string;
  /** To another time, or cancel. */
  change: string;
  until: (time: string) => string;
}

/** An incomplete language: missing texts fall back to English. */
export type PartialTexts = {
  [Key in keyof Texts]?: Texts[Key] extends Record<string, unknown> ? PartialSection<Texts[Key]> : Texts[Key];
};
type PartialSection<Section> = {
  [Key in keyof Section]?: Section[Key] extends MailTexts ? Partial<Section[Key]> : Section[Key];
};
