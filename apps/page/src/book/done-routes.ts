import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { hasCode } from '../has-code.ts';
import { renderPage, sendPage } from '../render-page.ts';
import { donePage, pendingPage } from './describe-done.ts';
import { providerOf, receiptOf } from './page-request.ts';
import type { OpenPage } from './page-visit.ts';

/** What has been booked, for an hour: then the mail is where to find it. */
export function doneRoutes({ bookingPages }: Clients, openPage: OpenPage, basePath: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:provider/done/:receipt', async (request, reply) => {
      const [providerId, receipt] = [providerOf(request), receiptOf(request)];
      try {
        const { page, booking, email = '', ...made } = await bookingPages.getPageBooking({ providerId, receipt });
        const visit = await openPage(request, page, booking?.language);
        const shown = booking ? donePage(visit, booking, made, basePath) : pendingPage(visit, email);
        return await sendPage(reply, 200, shown);
      } catch (error) {
        if (!hasCode(error, 'link.not_found')) throw error;
        const { page } = await bookingPages.getBookingPage({ providerId });
        const { frame, texts, links } = await openPage(request, page);
        const { over, again } = texts.book.done;
        return sendPage(
          reply,
          404,
          renderPage('notice', frame, { ...over, back: { href: links.offers, text: again } }),
        );
      }
    });
  };
}
