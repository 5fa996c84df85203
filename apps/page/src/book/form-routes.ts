import { DomainError } from '@scheduling/errors';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { Clients } from '../clients.ts';
import { hasCode } from '../has-code.ts';
import { fieldOf, formOf } from '../form-posts.ts';
import { queryOf } from '../query-of.ts';
import { sendPage } from '../render-page.ts';
import type { PersonField } from '../texts/texts.ts';
import { readShownPrice } from './describe-form.ts';
import { isOfferGone, isTaken, type WeekSender } from './send-week.ts';
import type { ChosenPlace } from './page-links.ts';
import { choiceOf, pageOf, placeOf, placeValueOf } from './page-request.ts';
import type { LinksToPages, OpenPage } from './page-visit.ts';
import {
  nothingTyped,
  type Person,
  personOf,
  type Problems,
  problemsOf,
  type Typed,
  typedIn,
} from './person-fields.ts';
import { createFormSender, type RefusedForm, sentPage } from './send-form.ts';

interface FormDependencies {
  clients: Clients;
  openPage: OpenPage;
  linksTo: LinksToPages;
  weeks: WeekSender;
  limit: onRequestAsyncHookHandler;
  /** Whether more comes from the address of the request than from persons. */
  isUnusual: (request: FastifyRequest) => boolean;
}

/** Asks who books what is chosen, and books it. */
export function formRoutes({ clients, openPage, linksTo, weeks, limit, isUnusual }: FormDependencies) {
  const { bookingPages } = clients;
  const sendForm = createFormSender(clients, openPage);

  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:provider/form/:choice', async (request, reply) => {
      const chosen = placeOf(queryOf(request));
      if (chosen === undefined) return startAgain(request, reply);
      try {
        const form = { typed: nothingTyped, problems: {}, error: undefined, shownPrice: '' };
        return await sendForm(request, reply, 200, chosen, form);
      } catch (error) {
        if (isOfferGone(error)) return weeks.sendOffers(request, reply, 200, true);
        if (isTaken(error)) return weeks.sendTaken(request, reply, { ...chosen, choice: choiceOf(request) });
        throw error;
      }
    });

    app.post('/:provider/form/:choice', { onRequest: limit }, async (request, reply) => {
      const chosen = pressedPlace(request);
      if (chosen === undefined) return startAgain(request, reply);
      const [typed, shownPrice] = [typedIn(request), formOf(request).get('price') ?? ''];
      try {
        const { receipt, refusal } = await book(request, chosen, typed, shownPrice);
        if (refusal === undefined) return await reply.redirect(linksTo(request).done(receipt), 303);
        const { status, problems = {}, error } = refusal;
        return await sendForm(request, reply, status, chosen, { typed, problems, error, shownPrice });
      } catch (error) {
        if (isOfferGone(error)) return weeks.sendOffers(request, reply, 409, true);
        if (hasCode(error, 'booking_page.choice_used')) return sendSent(request, reply, 409);
        throw error;
      }
    });
  };

  /** The receipt of what is booked, or why it is not. */
  async function book(
    request: FastifyRequest,
    { offer, at: resourceReference, start }: ChosenPlace,
    typed: Typed,
    shownPrice: string,
  ): Promise<{ receipt: string; refusal?: undefined } | { receipt?: undefined; refusal: Refusal }> {
    const [asked, choice] = [pageOf(request), choiceOf(request)];
    const { page } = await bookingPages.getBookingPage(asked);
    const { language } = await openPage(request, page);
    const person: Person = personOf(typed, page!);
    const problems = problemsOf(person, page!);
    if (Object.keys(problems).length > 0) return { refusal: { status: 400, problems } };
    const place = { offer, resourceReference, start, price: readShownPrice(shownPrice) };
    try {
      // The CRM knows whom it has invited.
      const stepUp = page!.invited === undefined && (isUnusual(request) || isFilledByProgram(request));
      const sent = await bookingPages.bookPageTime({ ...asked, choice, ...place, ...person, language, stepUp });
      return { receipt: sent.receipt };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === undefined) throw error;
      return { refusal };
    }
  }

  async function sendSent(request: FastifyRequest, reply: FastifyReply, status: number): Promise<FastifyReply> {
    const { page } = await bookingPages.getBookingPage(pageOf(request));
    return sendPage(reply, status, sentPage(await openPage(request, page)));
  }

  /** An address without a place. */
  async function startAgain(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    choiceOf(request);
    await bookingPages.getBookingPage(pageOf(request));
    return reply.redirect(linksTo(request).offers, 303);
  }
}

/** Nobody sees the field; programs fill in all of them. */
function isFilledByProgram(request: FastifyRequest): boolean {
  return fieldOf(request, 'website') !== undefined;
}

interface Refusal {
  status: 400 | 409;
  problems?: Problems;
  error?: RefusedForm['error'];
}

/** Why the form is asked again; undefined for what no form can change. */
function refusalOf(error: unknown): Refusal | undefined {
  if (isTaken(error)) return { status: 409, error: 'taken' };
  if (hasCode(error, 'booking_page.changed')) return { status: 409, error: 'changed' };
  const problems = refusedFields(error);
  return Object.keys(problems).length > 0 ? { status: 400, problems } : undefined;
}

/** The fields that calendar has refused. */
function refusedFields(error: unknown): Problems {
  if (!(error instanceof DomainError) || error.category !== 'invalid') return {};
  const names = error.errors.map(({ pointer }) => fieldNames.get(pointer)).filter((name) => name !== undefined);
  return Object.fromEntries(names.map((name) => [name, 'malformed']));
}

/** As calendar names them. */
const fieldNames = new Map<string, PersonField>([
  ['/name', 'name'],
  ['/email', 'email'],
  ['/mobile', 'mobile'],
  ['/note', 'message'],
]);

/** The place of the address, or the other one whose button was pressed. */
function pressedPlace(request: FastifyRequest): ChosenPlace | undefined {
  const chosen = placeOf(queryOf(request));
  return chosen && { ...chosen, ...placeValueOf(formOf(request).get('slot') ?? '') };
}
