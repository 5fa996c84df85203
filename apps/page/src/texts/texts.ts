/** Where a booking is, as its page says it. */
export type Situation = 'reserved' | 'requested' | 'lapsed' | 'booked' | 'over' | 'cancelled';

/** What a link leads to, as pages call it. */
export type Subject = 'booking' | 'request';

/** What a person does with a booking. */
export type Action = 'cancel' | 'attend' | 'move';

/** Why a person cannot do it. */
export type Obstacle = 'cancelled' | 'tooLate' | 'notOffered';

/** Pages that say nothing of a booking. */
export type Failure =
  | 'deadLink'
  | 'unknownAddress'
  | 'unavailable'
  | 'tooMany'
  | 'foreignForm'
  | 'invalid'
  | 'internal'
  | 'noBookingPage'
  | 'deadConfirmation'
  | 'foreignBooking'
  | 'invalidBooking'
  | 'tooManyBookings'
  | 'invitedOnly'
  | 'deadInvitation'
  | 'unavailableForm';

export interface Notice {
  title: string;
  text: string;
}

/** Before something is done. */
export interface Question {
  title: string;
  /** Which does it. */
  button: string;
  back: string;
}

/** The page on which a provider decides a request. */
export interface DecideTexts {
  stages: Record<Stage, Notice>;
  /** By whom, if that is known, and when. */
  confirmedBy: (name: string | undefined, moment: string) => string;
  declinedBy: (name: string | undefined, moment: string) => string;
  labels: { person: string; message: string; note: string; places: string; others: string };
  places: (free: number, all: number) => string;
  others: (count: number) => string;
  form: { message: string; hint: string; confirm: string; decline: string };
  errors: Record<'invalidMessage' | 'changed' | 'full' | 'decided' | 'noDecision', Notice>;
}

/** Where a request is, as its page says it to the provider. */
export type Stage = 'waiting' | 'lapsed' | 'confirmed' | 'declined' | 'booked' | 'cancelled';

/** What a person types on a booking page. */
export type PersonField = 'name' | 'email' | 'mobile' | 'message';

/** What is wrong with it. */
export type FieldProblem = 'missing' | 'tooLong' | 'malformed';

/** The pages on which persons book. */
export interface BookTexts {
  offers: {
    title: string;
    none: Notice;
    /** An offer that the address names. */
    gone: Notice;
    /** What was typed in a form whose offer there is no more. */
    message: string;
  };
  week: {
    title: (offer: string) => string;
    /** Above the persons to choose from. */
    people: string;
    anyone: string;
    secondZone: (zone: string) => string;
    next: (day: string) => string;
    allOffers: string;
  };
  /** `kept`: of a form; `freeAgain`: a moment later. */
  taken: Notice & { noneNear: string; kept: string; freeAgain: string; nearest: string };
  form: {
    title: string;
    isHeld: (time: string) => string;
    notHeld: string;
    needsConfirmation: string;
    otherTime: string;
    allTimes: string;
    labels: { name: string; email: string; mobile: string };
    optional: (label: string) => string;
    /** What sends a booking, or a request. */
    book: string;
    request: string;
    /** The same for another time. */
    bookAt: (time: string) => string;
    requestAt: (time: string) => string;
    invalid: string;
    changed: { title: string; text: (price: string | undefined) => string };
    problems: Record<PersonField, Record<FieldProblem, string>>;
  };
  done: Record<'booked' | 'requested', Notice> & {
    mail: (address: string) => string;
    change: string;
    calendar: string;
    over: Notice;
    again: string;
    another: string;
  };
  /** Of a form that was sent before, perhaps by somebody else. */
  sent: Notice;
  /** Before the mail is opened. */
  pending: { title: (address: string) => string; text: string };
  /** After it. */
  confirm: Record<Subject, { title: string; text: string; button: string }> & { limit: Notice };
  /** For those who have an invitation. */
  invited: {
    for: (name: string) => string;
    mails: (address: string) => string;
    /** `change`: if mails have the links. */
    used: Notice & { change: string };
    limit: Notice;
    /** As `ask` below, after what can be done otherwise. */
    orAsk: (provider: string) => string;
    /** Instead of texts that are about the mail. */
    sent: string;
    over: string;
  };
}

/** All texts of a language. The hyphen in a German "E-Mail" is non-breaking. */
export interface Texts {
  sandbox: string;
  situations: Record<Situation, Notice>;
  /** The end of a reservation. */
  heldUntil: (moment: string) => string;
  labels: {
    what: string;
    when: string;
    where: string;
    provider: string;
    price: string;
    name: string;
    email: string;
    changes: string;
    message: string;
    from: string;
    to: string;
    newTitle: string;
    newPlace: string;
  };
  deadlines: {
    both: (moment: string) => string;
    cancel: (moment: string) => string;
    move: (moment: string) => string;
  };
  attendance: string;
  buttons: { move: string; cancel: string; attend: string; calendar: string };
  tooLate: string;
  /** Whom to ask, without the mark at the end: the provider's address and numbers may follow. */
  ask: (provider: string) => string;
  /** After an action, if the booking is now as the person wanted. */
  done: { cancelled: string; attending: string; moved: Record<Subject, string> };
  cancel: Record<Subject, Question & { text: string }> & { message: (provider: string) => string; hint: string };
  attend: Question & { text: (provider: string) => string };
  move: {
    title: string;
    request: string;
    zone: (zone: string) => string;
    none: Notice;
    emptyWeek: string;
    previous: string;
    next: string;
    weeks: string;
    back: string;
  };
  confirm: Record<Subject, Question>;
  taken: Notice & { back: string };
  obstacles: Record<Action, Record<Obstacle, Notice>>;
  /** Begins the title of a page with a form that was not accepted. */
  error: string;
  invalidMessage: Notice;
  /** The time of the booking is another one than the form has shown. */
  changed: Notice;
  decide: DecideTexts;
  book: BookTexts;
  backToBooking: string;
  /** `through`: whose software the provider uses; `newTab`: of a link that opens one. */
  footer: {
    through: (crm: string) => string;
    /** Before anything is booked. */
    bookingThrough: (crm: string) => string;
    legal: string;
    purpose: string;
    privacy: string;
    newTab: string;
  };
  /** In the language itself: the page in it. */
  thisLanguage: string;
  failures: Record<Failure, Notice>;
  /** In the description of the calendar file. */
  calendar: (url: string) => string;
}
