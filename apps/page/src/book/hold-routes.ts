import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify';
import type { Clients } from '../clients.ts';
import { formOf } from '../form-posts.ts';
import { isOfferGone, isTaken, type WeekSender } from './send-week.ts';
import { earlierChoiceOf, momentOf, pageOf, wishOf } from './page-request.ts';
import type { LinksToPages } from './page-visit.ts';

/** Chooses a time. Where no confirmation is needed, its place is held for as long as a form takes. */
export function holdRoutes(
  { bookingPages }: Clients,
  { sendOffers, sendTaken }: WeekSender,
  linksTo: LinksToPages,
  limit: onRequestAsyncHookHandler,
) {
  return async (app: FastifyInstance): Promise<void> => {
    // Whoever opens the address of a week that was shown here begins again.
    app.get('/:provider/hold', async (request, reply) => {
      await bookingPages.getBookingPage(pageOf(request));
      return reply.redirect(linksTo(request).offers, 303);
    });

    app.post('/:provider/hold', { onRequest: limit }, async (request, reply) => {
      const form = formOf(request);
      const [wish, start, earlier] = [wishOf(form), momentOf(form.get('slot') ?? ''), earlierChoiceOf(form)];
      if (wish === undefined || start === undefined) return reply.redirect(linksTo(request).offers, 303);
      try {
        const { choice, place } = await bookingPages.choosePageTime({
          ...pageOf(request),
          offer: wish.offer,
          resourceReference: wish.with,
          start,
          choice: earlier,
        });
        const chosen = { ...wish, at: place!.resourceReference, start };
        return await reply.redirect(linksTo(request).form(choice, chosen), 303);
      } catch (error) {
        if (isOfferGone(error)) return sendOffers(request, reply, 409, true);
        if (isTaken(error)) return sendTaken(request, reply, { ...wish, start, choice: earlier });
        throw error;
      }
    });
  };
}
