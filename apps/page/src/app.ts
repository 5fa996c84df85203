import {
  addRequestHooks,
  basePathOf,
  closedSignal,
  createInstance,
  createStrangers,
  delayRejection,
  type RecordRequest,
  type Strangers,
} from '@scheduling/http';
import type { Logger } from '@scheduling/runtime';
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import { createCalendarLimit } from './calendar-limit.ts';
import type { Clients } from './clients.ts';
import { confirmRoutes } from './book/confirm-routes.ts';
import { doneRoutes } from './book/done-routes.ts';
import { formRoutes } from './book/form-routes.ts';
import { holdRoutes } from './book/hold-routes.ts';
import { createBookFailures } from './book/send-book-failure.ts';
import { createWeekSender } from './book/send-week.ts';
import { pageLinks } from './book/page-links.ts';
import { keptOf, providerOf } from './book/page-request.ts';
import { createPageVisits, type LinksToPages } from './book/page-visit.ts';
import { weekRoutes } from './book/week-routes.ts';
import { acceptOwnForms, formLimitBytes } from './form-posts.ts';
import { networkOf } from './network-of.ts';
import { rawPage } from './raw-page.ts';
import { commonHeaders, sendPage } from './render-page.ts';
import { attendRoutes } from './routes/attend.ts';
import { bookingRoutes } from './routes/booking.ts';
import { calendarRoutes, findSecret } from './routes/calendar.ts';
import { cancelRoutes } from './routes/cancel.ts';
import { decideRoutes } from './routes/decide.ts';
import { moveRoutes } from './routes/move.ts';
import { failurePage, isDeadLink, sendFailure, type SendFailure } from './send-failure.ts';
import { createVisits, linksOf, type LinksTo } from './visit.ts';
import { createVisitLimit, limits, type VisitLimit } from './visit-limit.ts';

export interface AppDependencies {
  clients: Clients;
  logger: Logger;
  recordRequest: RecordRequest;
  /** Under which persons reach the pages. */
  pageUrl: string;
  /** Addresses and networks, separated by commas, whose `X-Forwarded-For` is believed. */
  trustedProxies: string;
  /** True from the moment the stop begins. */
  isDraining: () => boolean;
}

/** Longer than any token, so that a longer one is answered like others that do not work. */
const maxParamLength = 16_384;
/** Links that do not work, from a network in a minute, that have no consequences: a person tries an old mail or two. */
const freeFailures = 20;

/** All pages as a plugin tree, without listening on a port: tests inject requests. */
export async function createApp(dependencies: AppDependencies): Promise<FastifyInstance> {
  const { logger, trustedProxies, recordRequest, isDraining } = dependencies;
  const app = createInstance({
    logger,
    trustedProxies,
    bodyLimit: formLimitBytes,
    maxParamLength,
    respondToFailure: rawPage,
    // Before the hooks: the response has no id yet.
    frameworkErrors: (error, request, reply) =>
      void sendFailure(error, request, reply.header('x-request-id', request.id)),
  });
  addRequestHooks(app, recordRequest, isDraining);
  app.addHook('onRequest', async (_request, reply) => void reply.headers(commonHeaders));
  app.setErrorHandler(sendFailure);
  app.setNotFoundHandler((request, reply) => sendPage(reply, 404, failurePage('unknownAddress', request)));
  const strangers = createStrangers(Date.now, freeFailures);
  await app.register(pagesOfLinks(dependencies, strangers));
  await app.register(bookingPages(dependencies, strangers), { prefix: '/book' });
  await app.register(calendars(dependencies, strangers), { prefix: '/calendar' });
  await app.ready();
  return app;
}

/** The pages that the links in mails open. Links that do not work are counted for all of them together. */
function pagesOfLinks({ clients, pageUrl }: AppDependencies, strangers: Strangers) {
  const visits = createVisitLimit(Date.now, limits.links);
  const basePath = basePathOf(pageUrl);
  const openVisit = createVisits(clients, basePath);
  const linksTo: LinksTo = (request) => linksOf(request, basePath);
  const routes = {
    '/booking': [
      bookingRoutes(clients, openVisit, pageUrl),
      cancelRoutes(clients, openVisit, linksTo),
      attendRoutes(clients, openVisit, linksTo),
      moveRoutes(clients, openVisit, linksTo),
    ],
    '/decide': [decideRoutes(clients, basePath)],
  };
  return async (app: FastifyInstance): Promise<void> => {
    for (const [prefix, plugins] of Object.entries(routes)) await app.register(pagesUnder(plugins), { prefix });
  };

  function pagesUnder(plugins: FastifyPluginAsync[]): FastifyPluginAsync {
    return async (scope) => {
      admitVisitors(scope, visits, strangers);
      acceptOwnForms(scope, pageUrl);
      noteDeadLinks(scope, strangers);
      for (const plugin of plugins) await scope.register(plugin);
    };
  }
}

/** The pages on which persons book. What is chosen and booked has limits of its own. */
function bookingPages({ clients, pageUrl }: AppDependencies, strangers: Strangers) {
  const basePath = basePathOf(pageUrl);
  const openPage = createPageVisits(clients, basePath);
  const weeks = createWeekSender(clients, openPage);
  const linksTo: LinksToPages = (request) => pageLinks(basePath, providerOf(request), keptOf(request));
  const all = [limits.bookingPages, limits.choices, limits.bookings].map((each) => createVisitLimit(Date.now, each));
  const [pages, choices, bookings] = all as [VisitLimit, VisitLimit, VisitLimit];
  // Whoever is behind the same address pays for it by a mail, and is not refused.
  const isUnusual = ({ ip }: FastifyRequest): boolean => all.some((limit) => limit.isUnusual(networkOf(ip)));
  return async (scope: FastifyInstance): Promise<void> => {
    admitVisitors(scope, pages, strangers);
    acceptOwnForms(scope, pageUrl);
    noteDeadLinks(scope, strangers, createBookFailures(clients, openPage));
    for (const plugin of [
      weekRoutes(clients, weeks),
      holdRoutes(clients, weeks, linksTo, refuseBeyond(choices)),
      formRoutes({ clients, openPage, linksTo, weeks, limit: refuseBeyond(bookings), isUnusual }),
      confirmRoutes({ clients, openPage, basePath, limit: refuseBeyond(bookings) }),
      doneRoutes(clients, openPage, basePath),
    ])
      await scope.register(plugin);
  };
}

/** Within the limit of their network, and slowly if it has opened many links that do not work. */
function admitVisitors(scope: FastifyInstance, visits: VisitLimit, strangers: Strangers): void {
  scope.addHook('onRequest', refuseBeyond(visits));
  scope.addHook('onRequest', (request) => strangers.delay(networkOf(request.ip), closedSignal(request)));
}

function refuseBeyond(visits: VisitLimit) {
  return async (request: FastifyRequest): Promise<void> => {
    const refusal = visits.count(networkOf(request.ip));
    if (refusal === undefined) return;
    await delayRejection(request);
    throw refusal;
  };
}

/**
 * Programs read many calendars from the same network, those of Google from few, so each calendar has a limit of its own,
 * and only those that do not work make a network wait.
 */
function calendars({ clients }: AppDependencies, strangers: Strangers) {
  const limit = createCalendarLimit(Date.now);
  return async (scope: FastifyInstance): Promise<void> => {
    scope.addHook('onRequest', async (request) => {
      const secret = findSecret(request);
      const refusal = secret === undefined ? undefined : limit.refusal(secret);
      if (refusal !== undefined) {
        await delayRejection(request);
        throw refusal;
      }
      if (secret === undefined || !limit.knows(secret))
        await strangers.delay(networkOf(request.ip), closedSignal(request));
    });
    noteDeadLinks(scope, strangers);
    await scope.register(calendarRoutes(clients, limit));
  };
}

function noteDeadLinks(scope: FastifyInstance, strangers: Strangers, send: SendFailure = sendFailure): void {
  scope.setErrorHandler((error, request, reply) => {
    if (isDeadLink(error, request)) strangers.noteFailure(networkOf(request.ip));
    return send(error, request, reply);
  });
  scope.setNotFoundHandler((request, reply) => {
    strangers.noteFailure(networkOf(request.ip));
    return sendPage(reply, 404, failurePage('deadLink', request));
  });
}
