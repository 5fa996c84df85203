import type { MailTemplate, PageMailTemplate } from '@scheduling/runtime';

/** The texts of one mail. */
export interface MailTexts {
  /**
   * `about` is the appointment's description, or the name of the provider or CRM; `when` the start, which comes first:
   * phones show some 40 characters.
   */
  subject: (about: string, when: string) => string;
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
  /** Of a mail that says what has changed. */
  changes: {
    /** Instead of the subject of the mail. */
    subjects: { time: MailTexts['subject']; place: MailTexts['subject'] };
    /** Instead of its lead. Only the title; nothing: what has changed is as it was when the person heard of it last. */
    leads: { time: string; place: string; timeAndPlace: string; title: string; nothing: string };
    /** Behind it, of a request. */
    stillRequested: string;
    /** Before what was true before. */
    previously: string;
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
    /** To the booking page, after the end of a booking. */
    again: string;
  };
  /** Whom to ask. */
  contact: {
    /** When the link no longer changes anything, */
    later: (whom: string) => string;
    /** and before that if it only cancels. */
    laterOrToMove: (whom: string) => string;
    /** Where no link changes anything. */
    toChange: (whom: string) => string;
    /** After the end of a booking, */
    again: (whom: string) => string;
    /** where replies reach the provider. */
    againOrReply: (whom: string) => string;
    /** While a request waits shortly before its start. */
    toBeAnswered: (whom: string) => string;
    /** Where there is nothing to book. */
    questions: (whom: string) => string;
    /** `whom`: addresses and numbers follow, */
    byLines: (name: string) => string;
    /** or none are known. */
    directly: (name: string) => string;
    /** There is an imprint at the foot of the mail. */
    imprint: string;
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
    /** Who did it: by the link in a mail, or on the booking page. */
    byPerson: string;
    onPage: string;
    throughCrm: (crm: string) => string;
    /** In the list of a day. */
    day: {
      /** How many bookings and requests there are. */
      bookings: (booked: number, requested: number) => string;
      /** Of an appointment. */
      noBookings: string;
      /** After the name of somebody who asks to take part. */
      requested: string;
      /** For somebody whose name is not stored any more. */
      nobody: string;
    };
    /** What a list does not show. */
    unlisted: (count: number) => string;
    /** Why the recipient gets these mails, and who can stop them. */
    reason: (provider: string, crm: string) => string;
  };
  verification: {
    /** The person whose address is to be confirmed. */
    labels: { crm: string; name: string; email: string };
    /** Why the CRM sends it. */
    purpose: (crm: string) => string;
    action: string;
    expiry: string;
    unexpected: string;
  };
  /** What somebody has booked on a page, which is not a booking yet. */
  page: {
    /** If it is to be a request: instead of the texts of the mail. */
    requests: Record<PageMailTemplate, MailTexts>;
    /** The link that books. */
    confirm: { booking: string; request: string };
    until: (time: string) => string;
    /** To the owner of an address that somebody else has entered. */
    unexpected: (provider: string) => string;
    /** How many upcoming bookings a person can have. */
    limit: (bookings: number, provider: string) => string;
    /** What makes room for another one. */
    cancelOne: (whom: string) => string;
  };
  /** What to do when the button of a link does not work. */
  fallback: string;
  automatic: string;
  /** The address of the sender is nobody's. */
  noReply: (name: string) => string;
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
