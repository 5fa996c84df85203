import { path } from './client.ts';
import type { Operation } from './journal.ts';
import { type Change, lastKnownAddress, lastKnownState, type Participation, type Place } from './model.ts';
import { type Form, formOf, linksOf, type Page } from './page-client.ts';
import { book, messageOf } from './participations.ts';
import { bookSlot } from './slots.ts';
import type { Worker } from './worker.ts';

/** How many want the same time at once. */
const rushSize = 4;
/** How often somebody presses a button who presses it more than once. */
const manyPresses = 3;

const byThePerson = ' by the person';

/** Whether somebody has done something by a link. */
export function isByPerson({ kind }: Operation): boolean {
  return kind.endsWith(byThePerson);
}

/** By the link, sometimes with more than one press of the button. */
export async function cancelAsPerson(worker: Worker): Promise<void> {
  const participation = chooseRecent(worker, worker.participations);
  if (participation === undefined) return book(worker);
  await submitAtOnce(worker, [await askToCancel(worker, participation)]);
}

/** To say that they will be there; some look, and say nothing. */
export async function attendAsPerson(worker: Worker): Promise<void> {
  const participation = chooseRecent(worker, worker.participations);
  if (participation === undefined) return book(worker);
  const page = await followLink(worker, participation, await openBooking(worker, participation), '/attend');
  const form = page && formOf(page);
  if (form === undefined || worker.random.chance(0.2)) return;
  await submit(worker, { participation, form, change: { to: 'attending' } });
}

/** To a time that the page offers. */
export async function moveAsPerson(worker: Worker): Promise<void> {
  const booking = chooseRecent(worker, worker.participations.filter(isOfSlot));
  if (booking === undefined) return bookSlot(worker);
  await submitAtOnce(worker, [await askToMove(worker, booking, chooseTime)]);
}

/** Many persons who want the first time at the same moment. */
export async function rushForTimes(worker: Worker): Promise<void> {
  const bookings = worker.participations.filter((each) => isOfSlot(each) && isOpen(each)).slice(-rushSize);
  if (bookings.length < 2) return bookSlot(worker);
  const questions = await Promise.all(bookings.map((booking) => askToMove(worker, booking, ([first]) => first)));
  await submitAtOnce(worker, questions);
}

/** Somebody with the page open twice moves the booking, and cancels it at the same moment. */
export async function moveAndCancelAtOnce(worker: Worker): Promise<void> {
  const booking = chooseRecent(worker, worker.participations.filter(isOfSlot));
  if (booking === undefined) return bookSlot(worker);
  const questions = [await askToMove(worker, booking, chooseTime), await askToCancel(worker, booking)];
  await submitAtOnce(worker, questions);
}

/** What a person is about to submit. */
interface Question {
  participation: Participation;
  form: Form;
  change: Pick<Change, 'to' | 'place'>;
}

async function askToCancel(worker: Worker, participation: Participation): Promise<Question | undefined> {
  const page = await followLink(worker, participation, await openBooking(worker, participation), '/cancel');
  const form = page && formOf(page);
  return form === undefined ? undefined : { participation, form, change: { to: 'CANCELED' } };
}

async function askToMove(
  worker: Worker,
  participation: Participation,
  choose: (times: string[], worker: Worker) => string | undefined,
): Promise<Question | undefined> {
  const week = await followLink(worker, participation, await openBooking(worker, participation), '/move');
  const time = week && choose(linksTo(week, '/move/confirm'), worker);
  const page = time === undefined ? undefined : await load(worker, participation, time);
  const form = page && formOf(page);
  return form && { participation, form, change: { to: 'moved', place: placeIn(form.action) } };
}

/** Mostly the first one, which others want as well. */
function chooseTime(times: string[], { random }: Worker): string | undefined {
  return times.length === 0 || random.chance(0.4) ? times[0] : random.pick(times);
}

function placeIn(action: string): Place {
  const query = new URL(action).searchParams;
  return {
    appointmentReference: query.get('appointment'),
    timeslotReference: query.get('timeslot'),
    start: query.get('start') ?? '',
  };
}

/** Those that the pages have asked. */
async function submitAtOnce(worker: Worker, questions: (Question | undefined)[]): Promise<void> {
  await Promise.all(questions.filter((question) => question !== undefined).map((question) => submit(worker, question)));
}

/** And opens the page to which the answer leads. */
async function submit(worker: Worker, { participation, form: asked, change }: Question): Promise<void> {
  const { random, journal } = worker;
  const { provider, customer, changes } = participation;
  const operation = journal.begin(`${change.to}${byThePerson}`);
  changes.push({ ...change, operation, notify: true, byPerson: true });
  const typed: Form['fields'] = change.to === 'CANCELED' ? { message: messageOf(operation, customer) } : {};
  const form = { ...asked, fields: { ...asked.fields, ...typed } };
  let next: string | undefined;
  await provider.tenant.pages.submit(operation, form, {
    person: customer.person,
    presses: random.chance(0.4) ? manyPresses : 1,
    onAnswer: (page) => {
      noteIfDead(participation, page, journal);
      next ??= page.location;
    },
  });
  if (next !== undefined) await load(worker, participation, next);
}

/** The page of a participation; undefined if there is no link to it at the moment. */
async function openBooking(worker: Worker, participation: Participation): Promise<Page | undefined> {
  const url = await findLink(participation);
  return url === undefined ? undefined : await load(worker, participation, url);
}

/** Mostly an earlier one, which works as long as the person has the same address. */
async function findLink({ provider, reference, customer, links }: Participation): Promise<string | undefined> {
  const email = lastKnownAddress(customer);
  const known = links.find((link) => link.email === email);
  if (known !== undefined) return known.url;
  const request = { method: 'GET', path: provider.at + path`/participations/${reference}/link` } as const;
  const answer = await provider.tenant.client.send(request);
  if (answer?.status !== 200) return undefined;
  const { url } = (answer.body as { link: { url: string } }).link;
  links.push({ url, email });
  return url;
}

/** Undefined if the page has no such link: then it is not offered. */
async function followLink(
  worker: Worker,
  participation: Participation,
  page: Page | undefined,
  to: string,
): Promise<Page | undefined> {
  const [url] = page === undefined ? [] : linksTo(page, to);
  return url === undefined ? undefined : await load(worker, participation, url);
}

function linksTo(page: Page, to: string): string[] {
  return linksOf(page).filter((url) => new URL(url).pathname.endsWith(to));
}

async function load({ journal }: Worker, participation: Participation, url: string): Promise<Page | undefined> {
  const { provider, customer } = participation;
  const page = await provider.tenant.pages.load(url, customer.person);
  if (page !== undefined) noteIfDead(participation, page, journal);
  return page;
}

/** Nothing but the end of a reservation or of its appointment takes a participation from the client that has made it. */
function noteIfDead(participation: Participation, { status }: Page, journal: Worker['journal']): void {
  const { reference, appointment } = participation;
  const state = lastKnownState(participation);
  if (status !== 404 || state === 'RESERVED' || state === 'DELETED' || appointment?.deleted !== undefined) return;
  journal.surprises.push(`I16 the link to ${reference}, which is ${state}, does not work`);
}

function chooseRecent({ random }: Worker, participations: Participation[]): Participation | undefined {
  const open = participations.filter(isOpen).slice(-20);
  return open.length === 0 ? undefined : random.pick(open);
}

function isOpen(participation: Participation): boolean {
  const state = lastKnownState(participation);
  return state === 'BOOKED' || state === 'REQUESTED';
}

function isOfSlot({ appointment }: Participation): boolean {
  return appointment === undefined;
}
