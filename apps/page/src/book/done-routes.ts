import type { BookingPage } from '@scheduling/contracts/calendar/v1';
import type { FastifyInstance } from 'fastify';
import type { Clients } from '../clients.ts';
import { hasCode } from '../has-code.ts';
import { sendPage } from '../render-page.ts';
import { donePage, overPage, pendingPage } from './describe-done.ts';
import { type AskedPage, pageOf, receiptOf } from './page-request.ts';
import type { OpenPage } from './page-visit.ts';

/** What has been booked, for an hour: then the mail is where to find it. */
export function doneRoutes({ bookingPages }: Clients, openPage: OpenPage, basePath: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:provider/done/:receipt', async (request, reply) => {
      const asked = pageOf(request);
      try {
        const found = await bookingPages.getPageBooking({ ...asked, receipt: receiptOf(request) });
        const { page, booking, email = '', ...made } = found;
        const visit = await openPage(request, page, booking?.language);
        const shown = booking ? donePage(visit, booking, made, basePath) : pendingPage(visit, email);
        return await sendPage(reply, 200, shown);
      } catch (error) {
        if (!hasCode(error, 'link.not_found')) throw error;
        return sendPage(reply, 404, overPage(await openPage(request, await findPage(asked))));
      }
    });
  };

  /** The booking stands, also if the invitation by which it was made works no longer. */
  async function findPage({ providerId, invitation }: AskedPage): Promise<BookingPage | undefined> {
    try {
      return (await bookingPages.getBookingPage({ providerId, invitation })).page;
    } catch (error) {
      if (!hasCode(error, 'link.not_found')) throw error;
      return (await bookingPages.getBookingPage({ providerId, closed: true })).page;
    }
  }
}
