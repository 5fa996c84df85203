import type { ContactLine } from '@scheduling/presentation';
import { Eta } from 'eta';
import { fileURLToPath } from 'node:url';
import type { Texts } from '../language/texts.ts';
import type { Brand } from './brand.ts';
import type { AppointmentView, Detail } from './describe-appointment.ts';

/** The tone of a mail: a confirmed booking, a pending one, one that ended, or none at all. */
export type Tone = 'good' | 'waiting' | 'ended' | 'neutral';

/** The parts of any mail; the layout formats them. Callers' texts are already cleaned. */
export interface MailParts {
  locale: string;
  tone: Tone;
  brand: Brand;
  subject: string;
  /** Whose mail it is. */
  name: string;
  status: string;
  headline: string;
  greeting: string;
  lead: string;
  /** Who caused what the mail is about, as far as it is known. */
  cause?: string | undefined;
  appointment?: AppointmentView | undefined;
  /** What the mail is about beside an appointment, or instead of one. */
  facts?: Detail[] | undefined;
  /** Several bookings. */
  list?: { rows: ListedBooking[]; more?: string | undefined } | undefined;
  message?: { label: string; lines: string[] } | undefined;
  /** What the person can say by one click before the other action. */
  reply?: { label: string; url: string } | undefined;
  action?: { label: string; url: string; notes: string[] } | undefined;
  /** Whom to ask, and by what, if that is known. */
  advice?: { text: string; contact: ContactLine[] } | undefined;
  /** What the attached file is for. */
  calendarNote?: string | undefined;
  contact: ContactLine[];
  /** Why the recipient gets such mails. */
  reason?: string | undefined;
  imprints: string[][];
  /** That nobody has written it, and who reads replies. */
  automatic: string;
  texts: Pick<Texts, 'labels' | 'fallback'>;
}

/** A booking, or an appointment, in a list. */
export interface ListedBooking {
  /** What happened to it. */
  status?: string;
  when: string;
  title: string;
  where?: string;
  /** Each person, and by what to reach the person. */
  who: ContactLine[][];
  action?: { label: string; url: string } | undefined;
}

const eta = new Eta({ views: fileURLToPath(new URL('../templates', import.meta.url)), cache: true, autoEscape: true });

/** Escapes every value. */
export function renderHtml(parts: MailParts): string {
  return eta.render('./mail', { ...parts, direction: directionOf(parts.locale), preview: previewOf(parts) });
}

/** What lists of mails show behind the subject. */
function previewOf({ headline, lead, appointment }: MailParts): string {
  if (appointment === undefined) return `${headline}. ${lead}`;
  const { period, where, link } = appointment;
  const facts = [...(period.isOneDay ? period.lines : [period.lines.join(' ')]), ...(link ? [] : where)];
  return `${headline}. ${facts.join(', ')}. ${lead}`;
}

export function renderText(parts: MailParts): string {
  const sections = [
    parts.headline,
    [parts.greeting, parts.lead, parts.cause].filter(Boolean).join('\n'),
    parts.appointment &&
      linesOf(parts.appointment)
        .map((line) => `  ${line}`)
        .join('\n'),
    parts.facts?.map((fact) => `  ${detailLine(fact)}`).join('\n'),
    parts.list &&
      [...parts.list.rows.map(listedLines), ...(parts.list.more ? [`  ${parts.list.more}`] : [])].join('\n\n'),
    parts.message && `${parts.message.label}:\n${parts.message.lines.map((line) => `> ${line}`.trimEnd()).join('\n')}`,
    parts.reply && `${parts.reply.label}:\n${parts.reply.url}`,
    parts.action && `${parts.action.label}:\n${parts.action.url}`,
    [...(parts.action?.notes ?? []), parts.advice && adviceLine(parts.advice)].filter(Boolean).join('\n'),
    parts.calendarNote,
  ];
  const contact = [parts.name, ...parts.contact.map(({ text }) => text)];
  const footer = [contact, ...parts.imprints, [parts.reason, parts.automatic].filter(Boolean)].map((lines) =>
    lines.join('\n'),
  );
  return `${sections.filter(Boolean).join('\n\n')}\n\n-- \n${footer.join('\n\n')}\n`;
}

function linesOf({ title, period, where, details, earlier }: AppointmentView): string[] {
  const before = (value: string | undefined): string[] =>
    earlier === undefined || value === undefined ? [] : [detailLine({ label: earlier.label, value })];
  return [
    title,
    ...before(earlier?.title),
    ...period.lines,
    `(${period.zone})`,
    ...before(earlier?.period),
    ...where,
    ...before(earlier?.where),
    ...details.map(detailLine),
  ];
}

function listedLines({ status, when, title, where, who, action }: ListedBooking): string {
  const persons = who.map((lines) => lines.map(({ text }) => text).join(', '));
  const lines = [
    status === undefined ? when : `${status}: ${when}`,
    title,
    where,
    ...persons,
    action && `${action.label}: ${action.url}`,
  ];
  return lines
    .filter(Boolean)
    .map((line) => `  ${line}`)
    .join('\n');
}

function adviceLine({ text, contact }: NonNullable<MailParts['advice']>): string {
  return [text, contact.map((line) => line.text).join(', ')].filter(Boolean).join(' ');
}

const detailLine = ({ label, value }: Detail): string => `${label}: ${value}`;

function directionOf(locale: string): 'ltr' | 'rtl' {
  return new Intl.Locale(locale).getTextInfo().direction === 'rtl' ? 'rtl' : 'ltr';
}
