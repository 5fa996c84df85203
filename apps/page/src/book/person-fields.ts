import { AskMobile, type BookingPage } from '@scheduling/contracts/calendar/v1';
import { multiLine, singleLine, withoutHosts } from '@scheduling/presentation';
import { isEmailAddress } from '@scheduling/runtime';
import type { FastifyRequest } from 'fastify';
import { fieldOf } from '../form-posts.ts';
import type { FieldProblem, PersonField } from '../texts/texts.ts';

/**
 * The longest values, in code points. A name is in the mail to an address that nobody has confirmed: it has room for
 * those of persons, and not for what somebody wants to tell others.
 */
export const maxLengths: Record<PersonField, number> = { name: 60, email: 254, mobile: 255, message: 500 };

/** What was typed, as it was typed. */
export type Typed = Record<PersonField, string>;

export const nothingTyped: Typed = { name: '', email: '', mobile: '', message: '' };

export function typedIn(request: FastifyRequest): Typed {
  const value = (name: PersonField): string => fieldOf(request, name) ?? '';
  return { name: value('name'), email: value('email'), mobile: value('mobile'), message: value('message') };
}

/** A person as calendar takes it. */
export interface Person {
  name: string;
  email: string;
  mobile: string | undefined;
  note: string | undefined;
}

type Asked = Pick<BookingPage, 'askMobile' | 'invited'>;

/** The fields of a form, in their order: who is invited is known. */
export function fieldsAsked({ askMobile, invited }: Asked): PersonField[] {
  if (invited) return ['message'];
  const asksMobile = askMobile === AskMobile.OPTIONAL || askMobile === AskMobile.REQUIRED;
  return ['name', 'email', ...(asksMobile ? (['mobile'] as const) : []), 'message'];
}

/**
 * What was typed in the fields that were asked for, without what nobody sees or has typed on purpose: control
 * characters, and spaces around.
 */
export function personOf(typed: Typed, page: Asked): Person {
  const asked = fieldsAsked(page);
  const lineOf = (field: PersonField): string => (asked.includes(field) ? singleLine(typed[field]) : '');
  return {
    name: lineOf('name'),
    email: lineOf('email'),
    mobile: lineOf('mobile') || undefined,
    note: multiLine(typed.message) || undefined,
  };
}

export type Problems = Partial<Record<PersonField, FieldProblem>>;

/** What is wrong with each field; empty if nothing is. */
export function problemsOf({ name, email, mobile = '', note = '' }: Person, page: Asked): Problems {
  const values: Record<PersonField, string> = { name, email, mobile, message: note };
  const required = new Set<PersonField>(['name', 'email']);
  if (page.askMobile === AskMobile.REQUIRED) required.add('mobile');
  const problemOf = (field: PersonField): FieldProblem | undefined => {
    const value = values[field];
    if (!isVisible(value)) return required.has(field) ? 'missing' : undefined;
    if (Array.from(value).length > maxLengths[field]) return 'tooLong';
    return isMalformed(field, value) ? 'malformed' : undefined;
  };
  const problems = fieldsAsked(page).map((field) => [field, problemOf(field)] as const);
  return Object.fromEntries(problems.filter(([, problem]) => problem !== undefined));
}

function isMalformed(field: PersonField, value: string): boolean {
  if (field === 'name') return withoutHosts(value) !== value.replaceAll(/\s+/g, ' ').trim();
  return field === 'email' && !isEmailAddress(value);
}

function isVisible(text: string): boolean {
  return /[^\p{White_Space}\p{Default_Ignorable_Code_Point}]/u.test(text);
}
