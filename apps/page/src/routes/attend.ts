import { singleLine, titleOf } from '@scheduling/presentation';
import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { describePeriod } from '../describe-booking.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import { type LinksTo, type OpenVisit, tokenOf, type Visit } from '../visit.ts';
import { isRefusal, sendObstacle, sendRefusal } from './send-obstacle.ts';

/** Asks before it notes that the person will be there. */
export function attendRoutes({ persons }: Clients, openVisit: OpenVisit, linksTo: LinksTo) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:token/attend', async (request, reply) => {
      const { booking } = await persons.getOwnBooking({ token: tokenOf(request) });
      const visit = await openVisit(request, booking);
      // Said before: the page of the booking says so.
      if (booking!.attendanceConfirmedAt !== undefined) return reply.redirect(visit.links.booking('attending'), 303);
      return sendObstacle(reply, visit, 'attend') ?? sendPage(reply, 200, questionPage(visit));
    });

    app.post('/:token/attend', async (request, reply) => {
      const token = tokenOf(request);
      try {
        await persons.confirmAttendance({ token });
        return await reply.redirect(linksTo(request).booking('attending'), 303);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        const { booking } = await persons.getOwnBooking({ token });
        return sendRefusal(reply, await openVisit(request, booking), 'attend');
      }
    });
  };
}

function questionPage(visit: Visit): Page {
  const { booking, provider, texts, links } = visit;
  const { title, text, button, back } = texts.attend;
  return renderPage('question', visit.frame, {
    title,
    text: text(singleLine(provider.name)),
    labels: texts.labels,
    what: titleOf(booking, provider),
    periods: [{ label: texts.labels.when, period: describePeriod(visit, booking.start!, booking.end!) }],
    action: links.attend,
    button,
    back: { href: links.booking(), text: back },
  });
}
