import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { queryOf } from '../query-of.ts';
import type { WeekSender } from './send-week.ts';
import { earlierChoiceOf, pageOf, resourceOf, weekDateOf, wishOf } from './page-request.ts';

/** What can be booked, and when. */
export function weekRoutes({ bookingPages }: Clients, { sendOffers, sendWeek }: WeekSender) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:provider', async (request, reply) => {
      const query = queryOf(request);
      const wish = wishOf(query);
      const at = { date: weekDateOf(query), choice: earlierChoiceOf(query) };
      if (wish !== undefined) return sendWeek(request, reply, { ...wish, ...at });
      const { page } = await bookingPages.getBookingPage(pageOf(request));
      const [only, ...others] = page!.offers;
      // What an address names and cannot be understood is answered as an offer that there is no more.
      if (only === undefined || others.length > 0 || query.has('offer'))
        return sendOffers(request, reply, 200, query.has('offer'));
      return sendWeek(request, reply, { offer: only.key, with: resourceOf(query), ...at });
    });
  };
}
