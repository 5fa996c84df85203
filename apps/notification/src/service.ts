import { BookingPageServiceService, ParticipationServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService, ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Logger } from '@scheduling/runtime';
import { createService, type RunningService } from '@scheduling/service';
import { notificationCleanUps } from './clean-ups.ts';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { NotificationSchema } from './db/schema.ts';
import type { NotificationDependencies } from './dependencies.ts';
import { hostMailService, hostParticipationMailService, hostSandboxMailService } from './grpc.ts';
import { startMailDelivery } from './mail/deliver-mails.ts';
import { registerMailMetrics } from './mail/mail-metrics.ts';
import { defaultTimings, type MailTimings } from './mail/timings.ts';
import { startMailWriting } from './mail/write-mails.ts';
import { startProviderMailWriting } from './provider-mail/write-provider-mails.ts';
import { createSenders } from './senders.ts';
import { notificationSubscriptions } from './subscriptions.ts';

export interface Overrides {
  timings?: Partial<MailTimings>;
  /** The delivery count at which a failing event becomes a dead letter. */
  maxAttempts?: number;
}

/**
 * Assembles the service, for the process as well as the tests. Without SMTP, mails stay pending and the service keeps
 * running.
 */
export function createNotificationService(
  config: Config,
  logger: Logger,
  overrides: Overrides = {},
): Promise<RunningService> {
  return createService<NotificationSchema>({
    name: 'notification',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, metrics, connect, use }) => {
      const {
        senderAddress,
        publicUrl,
        pageUrl,
        smtpUrl,
        sandboxSmtpUrl,
        smtpConnections: connections,
        mailQuotas: quotas,
      } = config;
      const identity = connect(IdentityServiceService, 'identity', config.identityAddress);
      const dependencies: NotificationDependencies = {
        database,
        identity,
        findSenders: createSenders(identity),
        participations: connect(ParticipationServiceService, 'calendar', config.calendarAddress),
        bookingPages: connect(BookingPageServiceService, 'calendar', config.calendarAddress),
        customers: connect(CustomerServiceService, 'customer', config.customerAddress),
        erasures: connect(ErasureServiceService, 'customer', config.customerAddress),
        senderAddress,
        publicUrl,
        pageUrl,
      };
      const timings = { ...defaultTimings, ...overrides.timings };
      const onOutcome = registerMailMetrics(metrics, database);
      use(startMailWriting({ dependencies, timings, logger }));
      use(startProviderMailWriting({ dependencies, quota: config.providerMailQuota, timings, logger }));
      use(startMailDelivery({ database, smtpUrl, sandboxSmtpUrl, connections, quotas, timings, onOutcome, logger }));
      return {
        hosted: [hostParticipationMailService(dependencies), hostSandboxMailService(dependencies)],
        operators: [hostMailService(database)],
        subscriptions: notificationSubscriptions(dependencies),
        maxAttempts: overrides.maxAttempts,
        cleanUps: notificationCleanUps,
      };
    },
  });
}
