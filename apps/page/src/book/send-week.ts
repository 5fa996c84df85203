import type { ListPageTimesRequest, ListPageTimesResponse } from '@scheduling/contracts/calendar/v1';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { fieldOf } from '../form-posts.ts';
import { hasCode } from '../has-code.ts';
import { sendPage } from '../render-page.ts';
import { canBookMore, sendUsed } from './describe-invited.ts';
import { offersPage } from './describe-offers.ts';
import { dateIn, weekPage } from './describe-page-week.ts';
import type { Wish } from './page-links.ts';
import { pageOf } from './page-request.ts';
import { findOffer, type OpenPage } from './page-visit.ts';

/** What several pages of an address end with: the offers, or the times of one. */
export interface WeekSender {
  /** The offers, with a note if one was named that there is no more. */
  sendOffers(request: FastifyRequest, reply: FastifyReply, status: number, isGone: boolean): Promise<FastifyReply>;
  sendWeek(request: FastifyRequest, reply: FastifyReply, wish: WeekWish): Promise<FastifyReply>;
  /** Says that a time is not free any more, with the nearest ones and those of its week. */
  sendTaken(request: FastifyRequest, reply: FastifyReply, wish: TakenWish): Promise<FastifyReply>;
}

export interface WeekWish extends Wish {
  date: string | undefined;
  choice: string | undefined;
}

export interface TakenWish extends Wish {
  start: Date;
  choice: string | undefined;
}

export function createWeekSender({ bookingPages }: Clients, openPage: OpenPage): WeekSender {
  const sendOffers: WeekSender['sendOffers'] = async (request, reply, status, isGone) => {
    const { page } = await bookingPages.getBookingPage(pageOf(request));
    const visit = await openPage(request, page);
    if (!canBookMore(visit)) return sendUsed(request, reply, visit);
    return sendPage(reply, status, offersPage(visit, isGone, fieldOf(request, 'message')));
  };

  /** Without what an old address may name and there is no more: first the resource, then the offer. */
  const listTimes = async (wish: ListPageTimesRequest): Promise<FoundWeek | undefined> => {
    try {
      return { wish, found: await bookingPages.listPageTimes(wish) };
    } catch (error) {
      if (isOfferGone(error))
        return wish.resourceReference === undefined ? undefined : listTimes({ ...wish, resourceReference: undefined });
      if (isOutOfRange(error) && wish.date !== undefined) return listTimes({ ...wish, date: undefined });
      throw error;
    }
  };

  return {
    sendOffers,
    sendWeek: async (request, reply, { offer, with: resourceReference, date, choice }) => {
      const week = await listTimes({ ...pageOf(request), offer, resourceReference, date, choice });
      return sendFound(request, reply, 200, week);
    },
    sendTaken: async (request, reply, { offer, with: resourceReference, start, choice }) => {
      const wish = { ...pageOf(request), offer, resourceReference, choice };
      try {
        const { page, times } = await bookingPages.listNearestPageTimes({ ...wish, start });
        const week = await listTimes({ ...wish, date: dateIn(start, page!.timeZone) });
        return await sendFound(request, reply, 409, week && { ...week, nearest: times });
      } catch (error) {
        if (isOfferGone(error)) return sendOffers(request, reply, 409, true);
        throw error;
      }
    },
  };

  async function sendFound(request: FastifyRequest, reply: FastifyReply, status: number, week: FoundWeek | undefined) {
    if (week === undefined) return sendOffers(request, reply, status, true);
    const { wish, found, ...rest } = week;
    const visit = await openPage(request, found.page);
    if (!canBookMore(visit)) return sendUsed(request, reply, visit);
    const offer = findOffer(visit.page, wish.offer)!;
    const shown = { offer: wish.offer, with: wish.resourceReference, choice: wish.choice, found, ...rest };
    return sendPage(reply, status, weekPage(visit, offer, shown));
  }
}

interface FoundWeek {
  wish: ListPageTimesRequest;
  found: ListPageTimesResponse;
  nearest?: ListPageTimesResponse['times'];
}

/** Whether there is no such offer any more, or no such resource of it. */
export function isOfferGone(error: unknown): boolean {
  return hasCode(error, 'booking_page.offer_not_found');
}

/** Whether nothing can be booked there any more. */
export function isTaken(error: unknown): boolean {
  return hasCode(error, 'slot.unavailable');
}

/** Whether no calendar has this date or time. */
function isOutOfRange(error: unknown): boolean {
  return hasCode(error, 'slot.invalid');
}
