import type { FastifyInstance } from 'fastify';
import { bookingCalendar } from '../booking-calendar.ts';
import type { Done } from '../booking-links.ts';
import type { Clients } from '../clients.ts';
import { describeBooking } from '../describe-booking.ts';
import { queryOf } from '../query-of.ts';
import { renderPage, sendPage } from '../render-page.ts';
import { type OpenVisit, tokenOf } from '../visit.ts';

/** The page of a booking, and its calendar file. */
export function bookingRoutes({ persons }: Clients, openVisit: OpenVisit, pageUrl: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:token', async (request, reply) => {
      const { booking } = await persons.getOwnBooking({ token: tokenOf(request) });
      const visit = await openVisit(request, booking);
      const content = describeBooking(visit, doneOf(queryOf(request).get('done')));
      return sendPage(reply, 200, renderPage('booking', visit.frame, content));
    });

    app.get('/:token/calendar.ics', async (request, reply) => {
      const token = tokenOf(request);
      const { booking } = await persons.getOwnBooking({ token });
      const visit = await openVisit(request, booking);
      return reply
        .type('text/calendar; charset=utf-8; method=PUBLISH')
        .header('content-disposition', 'inline; filename="booking.ics"')
        .send(bookingCalendar(visit, `${pageUrl}/booking/${token}`));
    });
  };
}

const allDone: readonly Done[] = ['cancelled', 'attending', 'moved'];

function doneOf(done: string | null): Done | undefined {
  return allDone.find((each) => each === done);
}
