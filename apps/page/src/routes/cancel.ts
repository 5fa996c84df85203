import { DomainError, type ErrorCode } from '@scheduling/errors';
import { multiLine, singleLine, titleOf } from '@scheduling/presentation';
import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { describePeriod, subjectOf } from '../describe-booking.ts';
import { fieldOf } from '../form-posts.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import { type LinksTo, type OpenVisit, tokenOf, type Visit } from '../visit.ts';
import { isRefusal, sendObstacle, sendRefusal } from './send-obstacle.ts';

/** Asks before it cancels. */
export function cancelRoutes({ persons }: Clients, openVisit: OpenVisit, linksTo: LinksTo) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:token/cancel', async (request, reply) => {
      const { booking } = await persons.getOwnBooking({ token: tokenOf(request) });
      const visit = await openVisit(request, booking);
      return sendObstacle(reply, visit, 'cancel') ?? sendPage(reply, 200, questionPage(visit, { message: '' }));
    });

    app.post('/:token/cancel', async (request, reply) => {
      const token = tokenOf(request);
      const message = multiLine(fieldOf(request, 'message') ?? '');
      const openPresent = async (): Promise<Visit> =>
        openVisit(request, (await persons.getOwnBooking({ token })).booking);
      try {
        await persons.cancelOwnBooking({ token, message: message || undefined });
        return await reply.redirect(linksTo(request).booking('cancelled'), 303);
      } catch (error) {
        if (isRefusal(error)) return sendRefusal(reply, await openPresent(), 'cancel');
        if (!(error instanceof DomainError && error.code === invalidMessage)) throw error;
        return sendPage(reply, 400, questionPage(await openPresent(), { message, isInvalid: true }));
      }
    });
  };
}

/** One that is too long. */
const invalidMessage = 'participation.invalid' satisfies ErrorCode;

function questionPage(visit: Visit, { message, isInvalid = false }: { message: string; isInvalid?: boolean }): Page {
  const { booking, provider, texts, links } = visit;
  const { title, text, button, back } = texts.cancel[subjectOf(booking)];
  const { hint, message: labelOf } = texts.cancel;
  return renderPage('question', visit.frame, {
    title: isInvalid ? `${texts.error}: ${title}` : title,
    heading: title,
    text,
    labels: texts.labels,
    what: titleOf(booking, provider),
    periods: [{ label: texts.labels.when, period: describePeriod(visit, booking.start!, booking.end!) }],
    error: isInvalid ? { title: texts.invalidForm.title, text: texts.invalidForm.message } : undefined,
    message: { label: labelOf(singleLine(provider.name)), hint, value: message },
    action: links.cancel,
    button,
    back: { href: links.booking(), text: back },
  });
}
