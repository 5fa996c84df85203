import { multiLine, singleLine, titleOf } from '@scheduling/presentation';
import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { describePeriod, subjectOf } from '../describe-booking.ts';
import { obstacleTo } from '../describe-obstacle.ts';
import { fieldOf, shownStartOf } from '../form-posts.ts';
import { hasCode } from '../has-code.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import { type LinksTo, type OpenVisit, tokenOf, type Visit } from '../visit.ts';
import { isChanged, isRefusal, sendObstacle, sendRefusal } from './send-obstacle.ts';

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
        const start = shownStartOf(request);
        const { alreadyCancelled } = await persons.cancelOwnBooking({ token, message: message || undefined, start });
        // Then nobody gets the message.
        if (alreadyCancelled && message !== '') return sendRefusal(reply, await openPresent(), 'cancel');
        return await reply.redirect(linksTo(request).booking('cancelled'), 303);
      } catch (error) {
        const isInvalid = hasCode(error, 'participation.invalid');
        if (!isInvalid && !isRefusal(error) && !isChanged(error)) throw error;
        const visit = await openPresent();
        if (isInvalid) return sendPage(reply, 400, questionPage(visit, { message, error: 'invalidMessage' }));
        if (isRefusal(error) || obstacleTo('cancel', visit.booking)) return sendRefusal(reply, visit, 'cancel');
        return sendPage(reply, 409, questionPage(visit, { message, error: 'changed' }));
      }
    });
  };
}

interface Form {
  /** What was typed. */
  message: string;
  /** Why it is asked again. */
  error?: 'invalidMessage' | 'changed';
}

function questionPage(visit: Visit, { message, error }: Form): Page {
  const { booking, provider, texts, links } = visit;
  const { title, text, button, back } = texts.cancel[subjectOf(booking)];
  const { hint, message: labelOf } = texts.cancel;
  return renderPage('question', visit.frame, {
    title: error ? `${texts.error}: ${title}` : title,
    heading: title,
    text,
    labels: texts.labels,
    what: titleOf(booking, provider),
    periods: [{ label: texts.labels.when, period: describePeriod(visit, booking.start!, booking.end!) }],
    error: error && texts[error],
    message: { label: labelOf(singleLine(provider.name)), hint, value: message, isInvalid: error === 'invalidMessage' },
    start: booking.start!.toISOString(),
    action: links.cancel,
    button,
    back: { href: links.booking(), text: back },
  });
}
