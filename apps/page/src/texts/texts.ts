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
  | 'internal';

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
  backToBooking: string;
  /** `through`: whose software the provider uses. */
  footer: { through: (crm: string) => string; legal: string; purpose: string; privacy: string };
  /** In the language itself: the page in it. */
  thisLanguage: string;
  failures: Record<Failure, Notice>;
  /** In the description of the calendar file. */
  calendar: (url: string) => string;
}
