import cookie from '@fastify/cookie';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { addRequestHooks, createInstance, createStrangers, type RecordRequest, type Strangers } from '@scheduling/http';
import type { Logger } from '@scheduling/runtime';
import type { FastifyInstance } from 'fastify';
import { type Admission, createAdmission, longestBodyBytes } from './admission.ts';
import { freeFailures, requireKey } from './authentication.ts';
import { createBrowserPages } from './browser-pages.ts';
import { serveClientPackages } from './client-packages.ts';
import type { Clients } from './clients.ts';
import { passOnIdempotencyKeys } from './idempotency-key.ts';
import { addJsonParser, refuseCompressedBodies } from './json-body.ts';
import type { KeyRing } from './key-ring.ts';
import { readDeepObjects } from './deep-objects.ts';
import { removeUnknownFields } from './known-fields.ts';
import { serveGuides } from './guides/serve-guides.ts';
import { serveDocumentation } from './openapi.ts';
import { sendProblem } from './problem.ts';
import { createRateLimiter } from './rate-limit.ts';
import { rawProblem } from './raw-problem.ts';
import {
  collectRoutes,
  type Route,
  refuseOtherMethods,
  refuseUnknownRoutes,
  requireDeclaredScopes,
} from './route-table.ts';
import { accountRoutes } from './routes/accounts.ts';
import { appointmentRoutes } from './routes/appointments.ts';
import { blockRoutes } from './routes/blocks.ts';
import { bookingRoutes } from './routes/bookings.ts';
import { bookingRulesRoutes } from './routes/booking-rules.ts';
import { calendarRoutes } from './routes/calendars.ts';
import { crmRoute } from './routes/crm.ts';
import { customerRoutes } from './routes/customers.ts';
import { erasureRoutes } from './routes/erasures.ts';
import { eventRoutes } from './routes/events.ts';
import { emailVerificationRoutes } from './routes/email-verification.ts';
import { hoursRoutes } from './routes/hours.ts';
import { invitationRoutes } from './routes/invitations.ts';
import { participationLinkRoutes } from './routes/participation-links.ts';
import { participationMailRoutes } from './routes/participation-mails.ts';
import { participationRoutes } from './routes/participations.ts';
import { probeRoutes } from './routes/probes.ts';
import { providerRoutes } from './routes/providers.ts';
import { sandboxRoutes } from './routes/sandbox.ts';
import { slotRoutes } from './routes/slots.ts';
import { staffRoutes } from './routes/staff.ts';
import { timeslotRoutes } from './routes/timeslots.ts';
import { userRoutes } from './routes/users.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { offerStrictHandling } from './strict-handling.ts';
import { toRequestError, validatorCompiler } from './validation.ts';

export interface AppDependencies {
  clients: Clients;
  keyRing: KeyRing;
  logger: Logger;
  recordRequest: RecordRequest;
  publicUrl: string;
  pageUrl: string;
  /** Shown in the API document; empty if there is none. */
  contactEmail: string;
  /** Addresses and networks, separated by commas, whose `X-Forwarded-For` is believed. */
  trustedProxies: string;
  /** True from the moment the stop begins: no new work should be sent here. */
  isDraining: () => boolean;
}

export interface App {
  http: FastifyInstance;
  /** Every route that clients can call, for tests that iterate over them. */
  routes: readonly Route[];
}

/** A reference of 255 characters may take 12 characters each when it is percent-encoded. */
const maxParamLength = 255 * 12;

/** The whole HTTP surface as a plugin tree, without listening on a port: tests inject requests. */
export async function createApp(dependencies: AppDependencies): Promise<App> {
  const app = createGatewayInstance(dependencies);
  addRequestHooks(app, dependencies.recordRequest, dependencies.isDraining);
  const admission = createAdmission();
  addJsonParser(app, admission);
  const strangers = createStrangers(Date.now, freeFailures);
  const collected = collectRoutes(app);
  await serveDocumentation(app, dependencies);
  serveGuides(app, dependencies.publicUrl);
  serveClientPackages(app);
  await app.register(cookie);
  await app.register(probeRoutes(dependencies.isDraining));
  await app.register(emailVerificationRoutes(dependencies.clients, strangers));
  await app.register(crmRoutes(dependencies, { admission, strangers }), { prefix: '/crms/:crmId' });
  const routes = [...collected];
  requireDeclaredScopes(routes);
  refuseOtherMethods(app, routes);
  refuseUnknownRoutes(app, createBrowserPages(dependencies.publicUrl));
  await app.ready();
  return { http: app, routes };
}

function createGatewayInstance({ logger, trustedProxies }: Pick<AppDependencies, 'logger' | 'trustedProxies'>) {
  const app = createInstance({
    logger,
    trustedProxies,
    bodyLimit: longestBodyBytes,
    maxParamLength,
    respondToFailure: rawProblem,
    frameworkErrors: (error, request, reply) => void sendProblem(error, request, reply),
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSchemaErrorFormatter(toRequestError);
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply));
  return app;
}

function crmRoutes(
  dependencies: AppDependencies,
  { admission, strangers }: { admission: Admission; strangers: Strangers },
) {
  const { clients } = dependencies;
  return async (scope: FastifyInstance): Promise<void> => {
    requireKey(scope, dependencies.keyRing, createRateLimiter(), strangers);
    refuseCompressedBodies(scope);
    admission.guard(scope);
    readDeepObjects(scope);
    offerStrictHandling(scope);
    removeUnknownFields(scope);
    passOnIdempotencyKeys(scope);
    scope.addHook('onRequest', async (_request, reply) => {
      // Responses contain personal data.
      void reply.header('cache-control', 'no-store');
    });
    for (const routes of [
      crmRoute(),
      userRoutes(clients, dependencies.publicUrl, admission),
      accountRoutes(clients, dependencies.publicUrl, admission),
      providerRoutes(clients, dependencies.publicUrl, admission),
      staffRoutes(clients),
      timeslotRoutes(clients, dependencies.publicUrl, admission),
      hoursRoutes(clients),
      blockRoutes(clients, dependencies.publicUrl, admission),
      appointmentRoutes(clients, dependencies.publicUrl, admission),
      participationRoutes(clients, dependencies.publicUrl, admission),
      participationMailRoutes(clients),
      participationLinkRoutes(clients, dependencies.pageUrl),
      slotRoutes(clients, dependencies.publicUrl, admission),
      bookingRoutes(clients),
      bookingRulesRoutes(clients, dependencies.pageUrl),
      calendarRoutes(clients, dependencies.pageUrl),
      customerRoutes(clients, dependencies.publicUrl, admission),
      invitationRoutes(clients, dependencies.pageUrl),
      erasureRoutes(clients),
      eventRoutes(clients, dependencies.publicUrl),
      webhookRoutes(clients, dependencies.publicUrl),
      sandboxRoutes(clients, dependencies.publicUrl),
    ]) {
      await scope.withTypeProvider<TypeBoxTypeProvider>().register(routes);
    }
  };
}
