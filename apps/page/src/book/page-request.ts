import { DomainError } from '@scheduling/errors';
import type { FastifyRequest } from 'fastify';
import { pageLanguage } from '../page-language.ts';
import { dateOf, queryOf } from '../query-of.ts';
import { isToken } from '../visit.ts';
import type { ChosenPlace, Kept, Wish } from './page-links.ts';

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Of which provider a page is, and by which invitation it is opened, if by one. */
export interface AskedPage {
  providerId: string;
  invitation: string | undefined;
}

/** What every call about a page says of it. */
export function pageOf(request: FastifyRequest): AskedPage {
  return { providerId: providerOf(request), invitation: invitationOf(queryOf(request)) };
}

/** A token that calendar has never issued. */
const deadInvitation = '-';

/**
 * The token of an invitation; undefined only if there is none. What cannot be one is answered as one that works no
 * longer: whoever is invited must not come to the page for everybody unnoticed.
 */
export function invitationOf(query: URLSearchParams): string | undefined {
  const token = query.get('for');
  if (token === null) return undefined;
  return isToken(token) ? token : deadInvitation;
}

/** The provider in the path; what cannot be the id of one is not sent to calendar. */
export function providerOf(request: FastifyRequest): string {
  return idOf(request, 'provider');
}

export function choiceOf(request: FastifyRequest): string {
  return idOf(request, 'choice');
}

/** Of a form that was sent; what cannot be one is answered as one that works no longer. */
export function receiptOf({ params }: FastifyRequest): string {
  const { receipt = '' } = params as { receipt?: string };
  return isToken(receipt) ? receipt : '';
}

function idOf({ params }: FastifyRequest, name: 'provider' | 'choice'): string {
  const id = (params as Record<string, string | undefined>)[name] ?? '';
  if (!uuid.test(id)) throw new DomainError('booking_page.not_found');
  return id;
}

/** An earlier choice. */
export function earlierChoiceOf(fields: URLSearchParams): string | undefined {
  const choice = fields.get('choice') ?? '';
  return uuid.test(choice) ? choice : undefined;
}

export function wishOf(fields: URLSearchParams): Wish | undefined {
  const offer = lineOf(fields, 'offer');
  return offer === undefined ? undefined : { offer, with: resourceOf(fields) };
}

/** With whom something is to be booked. */
export function resourceOf(fields: URLSearchParams): string | undefined {
  return lineOf(fields, 'with');
}

/** Of the address of a form. */
export function placeOf(query: URLSearchParams): ChosenPlace | undefined {
  const [wish, at, start] = [wishOf(query), lineOf(query, 'at'), momentOf(query.get('slot') ?? '')];
  return wish && at !== undefined && start ? { ...wish, at, start } : undefined;
}

/** A place as the value of a button. */
export function placeValue({ start, at }: Pick<ChosenPlace, 'start' | 'at'>): string {
  return `${start.toISOString()} ${at}`;
}

/** The place that a button names; undefined if it names none. */
export function placeValueOf(value: string): Pick<ChosenPlace, 'start' | 'at'> | undefined {
  const [, moment = '', at] = /^(\S+) (.+)$/.exec(value) ?? [];
  const start = momentOf(moment);
  return start && at !== undefined && isReference(at) ? { start, at } : undefined;
}

/** Longer than any reference. */
const maxLength = 1_000;

/** Undefined for what can be no reference or key. */
function lineOf(fields: URLSearchParams, name: string): string | undefined {
  const value = fields.get(name) ?? '';
  return isReference(value) ? value : undefined;
}

function isReference(value: string): boolean {
  return value !== '' && value.length <= maxLength && !/[\p{Cc}\u2028\u2029\uFFFD]/u.test(value);
}

/** An instant as our own pages write it; undefined for anything else. */
export function momentOf(text: string): Date | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) || !isRepresentable(text)) return undefined;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? undefined : moment;
}

/** A date of the week that an address names. */
export function weekDateOf(query: URLSearchParams): string | undefined {
  const date = dateOf(query);
  return date !== undefined && isRepresentable(date) ? date : undefined;
}

/** Whether calendar can do with the year with which a date begins. */
function isRepresentable(date: string): boolean {
  const year = Number(date.slice(0, 4));
  return year >= 1970 && year <= 9998;
}

export function keptOf(request: FastifyRequest): Kept {
  const { language, isChosen } = pageLanguage(request);
  const query = queryOf(request);
  return {
    lang: isChosen ? language : undefined,
    zone: zoneOf(query.get('zone') ?? ''),
    for: invitationOf(query),
  };
}

/** A time zone by its IANA name; not an offset, which Intl knows as well. */
function zoneOf(name: string): string | undefined {
  if (!/^[A-Z][\w+/-]{1,63}$/i.test(name)) return undefined;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}
