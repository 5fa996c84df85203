import { singleLine, titleOf } from '@scheduling/presentation';
import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { describePeriod } from '../describe-booking.ts';
import { obstacleTo } from '../describe-obstacle.ts';
import { shownStartOf } from '../form-posts.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import type { Notice } from '../texts/texts.ts';
import { type LinksTo, type OpenVisit, tokenOf, type Visit } from '../visit.ts';
import { isChanged, isRefusal, sendObstacle, sendRefusal } from './send-obstacle.ts';

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
        await persons.confirmAttendance({ token, start: shownStartOf(request) });
        return await reply.redirect(linksTo(request).booking('attending'), 303);
      } catch (error) {
        if (!isRefusal(error) && !isChanged(error)) throw error;
        const visit = await openVisit(request, (await persons.getOwnBooking({ token })).booking);
        if (isRefusal(error) || obstacleTo('attend', visit.booking)) return sendRefusal(reply, visit, 'attend');
        return sendPage(reply, 409, questionPage(visit, visit.texts.changed));
      }
    });
  };
}

/** @param error why it asks again */
function questionPage(visit: Visit, error?: Notice): Page {
  const { booking, provider, texts, links } = visit;
  const { title, text, button, back } = texts.attend;
  return renderPage('question', visit.frame, {
    title: error ? `${texts.error}: ${title}` : title,
    heading: title,
    text: text(singleLine(provider.name)),
    labels: texts.labels,
    what: titleOf(booking, provider),
    periods: [{ label: texts.labels.when, period: describePeriod(visit, booking.start!, booking.end!) }],
    error,
    start: booking.start!.toISOString(),
    action: links.attend,
    button,
    back: { href: links.booking(), text: back },
  });
}
