import type { OwnPlace, OwnTime } from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { linesOfLocation, titleOf } from '@scheduling/presentation';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { placeQuery } from '../booking-links.ts';
import type { Clients } from '../clients.ts';
import { describePeriod, situationOf, subjectOf } from '../describe-booking.ts';
import { describeNoTimes, describeWeek } from '../describe-week.ts';
import { shownStartOf } from '../form-posts.ts';
import { dateOf, queryOf } from '../query-of.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import { type LinksTo, type OpenVisit, tokenOf, type Visit } from '../visit.ts';
import { isRefusal, sendObstacle, sendRefusal } from './send-obstacle.ts';

/** The times to which a booking can be moved, and the question before it is. */
export function moveRoutes({ persons }: Clients, openVisit: OpenVisit, linksTo: LinksTo) {
  /** The visit as calendar sees it after it has refused something. */
  const openPresent = async (request: FastifyRequest): Promise<Visit> =>
    openVisit(request, (await persons.getOwnBooking({ token: tokenOf(request) })).booking);

  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:token/move', async (request, reply) => {
      const found = await persons.listOwnTimes({ token: tokenOf(request), date: dateOf(queryOf(request)) });
      const visit = await openVisit(request, found.booking);
      const obstacle = sendObstacle(reply, visit, 'move');
      if (obstacle !== undefined) return obstacle;
      if (found.monday === undefined)
        return sendPage(reply, 200, renderPage('notice', visit.frame, describeNoTimes(visit)));
      return sendPage(
        reply,
        200,
        renderPage('week', visit.frame, describeWeek(visit, { ...found, monday: found.monday })),
      );
    });

    app.get('/:token/move/confirm', async (request, reply) => {
      const found = await persons.listOwnTimes({ token: tokenOf(request), date: dateOf(queryOf(request)) });
      const visit = await openVisit(request, found.booking);
      // Its end is not in the address, and nothing there could be trusted to be what calendar does.
      const time = findTime(found.times, queryOf(request));
      if (time === undefined) return sendObstacle(reply, visit, 'move') ?? sendTaken(request, reply, visit);
      return sendObstacle(reply, visit, 'move') ?? sendPage(reply, 200, questionPage(visit, request, time));
    });

    app.post('/:token/move/confirm', async (request, reply) => {
      const [token, place] = [tokenOf(request), placeOf(queryOf(request))];
      try {
        if (place === undefined) throw new DomainError('slot.unavailable');
        await persons.moveOwnBooking({ token, place, start: shownStartOf(request) });
        return await reply.redirect(linksTo(request).booking('moved'), 303);
      } catch (error) {
        if (isRefusal(error)) return sendRefusal(reply, await openPresent(request), 'move');
        if (!isTaken(error)) throw error;
        return sendTaken(request, reply, await openPresent(request));
      }
    });
  };
}

const takenCodes: readonly string[] = [
  'slot.unavailable',
  'slot.invalid',
  'text.invalid',
  'timeslot.not_found',
  'appointment.not_found',
  'appointment.cancelled',
] satisfies ErrorCode[];

function isTaken(error: unknown): boolean {
  return error instanceof DomainError && takenCodes.includes(error.code);
}

/** Leads back to the times of the same week. */
function sendTaken(request: FastifyRequest, reply: FastifyReply, visit: Visit): FastifyReply {
  const { texts, links } = visit;
  const { title, text, back } = texts.taken;
  const content = { title, text, back: { href: links.move(dateOf(queryOf(request))), text: back } };
  return sendPage(reply, 409, renderPage('notice', visit.frame, content));
}

function questionPage(visit: Visit, request: FastifyRequest, time: OwnTime): Page {
  const { start, end, place } = time;
  const { booking, provider, texts, links } = visit;
  const { title, button, back } = texts.confirm[subjectOf(booking)];
  const date = dateOf(queryOf(request));
  return renderPage('question', visit.frame, {
    title,
    text: situationOf(booking) === 'requested' ? texts.move.request : undefined,
    labels: texts.labels,
    what: titleOf(booking, provider),
    details: changesOf(visit, time),
    periods: [
      { label: texts.labels.from, period: describePeriod(visit, booking.start!, booking.end!) },
      { label: texts.labels.to, period: describePeriod(visit, start!, end!) },
    ],
    start: start!.toISOString(),
    action: links.confirm(date ?? '', place!),
    button,
    back: { href: links.move(date), text: back },
  });
}

/** What will be different beside the time: an open appointment may have another title, and another resource another address. */
function changesOf({ booking, provider, texts, locale }: Visit, { place, description, address }: OwnTime) {
  const { labels } = texts;
  const isOpen = place!.kind?.$case === 'appointmentReference';
  const [title, present] = [titleOf({ ...booking, description }, provider), titleOf(booking, provider)];
  const [where, before] = [address, booking.address].map((each) => linesOfLocation(each, locale).join(', '));
  return [
    ...(isOpen && title !== present ? [{ label: labels.newTitle, value: title }] : []),
    ...(where !== before ? [{ label: labels.newPlace, value: where || '–' }] : []),
  ];
}

/** The place that an address names; undefined if it names none. */
function placeOf(query: URLSearchParams): OwnPlace | undefined {
  const [timeslot, start, appointment] = ['timeslot', 'start', 'appointment'].map((name) => query.get(name));
  if (appointment) return { kind: { $case: 'appointmentReference', value: appointment } };
  if (!timeslot || !start) return undefined;
  const moment = new Date(start);
  if (Number.isNaN(moment.getTime())) return undefined;
  return { kind: { $case: 'timeslot', value: { timeslotReference: timeslot, start: moment } } };
}

/**
 * The time that an address names. Its place may have been taken since; then it is another one that has become free at
 * the same time, which the person is asked about instead.
 */
function findTime(times: OwnTime[], query: URLSearchParams): OwnTime | undefined {
  const given = placeOf(query);
  if (given === undefined) return undefined;
  const same = JSON.stringify(placeQuery(given));
  const startMs = given.kind?.$case === 'timeslot' ? given.kind.value.start?.getTime() : undefined;
  return (
    times.find(({ place }) => JSON.stringify(placeQuery(place!)) === same) ??
    times.find(({ start }) => start!.getTime() === startMs)
  );
}
