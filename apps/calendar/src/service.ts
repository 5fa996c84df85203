import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Logger } from '@scheduling/runtime';
import { createProviderCache, createService, type RunningService } from '@scheduling/service';
import { LRUCache } from 'lru-cache';
import { calendarCleanUps } from './clean-ups.ts';
import type { Config } from './config.ts';
import { startCopyRefresher } from './customer/start-copy-refresher.ts';
import { migrationSets } from './db/migrate.ts';
import type { CalendarSchema } from './db/schema.ts';
import type { CalendarDependencies } from './dependencies.ts';
import {
  hostCalendarServices,
  hostHoursOverviewService,
  hostMailLinkService,
  hostProviderErasureService,
} from './grpc.ts';
import { createHoursMetrics } from './hours/hours-metrics.ts';
import { startMaking } from './hours/start-making.ts';
import { createBookingMetrics } from './participation/booking-metrics.ts';
import { startReservationSweeper } from './participation/start-reservation-sweeper.ts';
import { createPageMetrics } from './page/page-metrics.ts';
import { createLinkTokens } from './person/link-token.ts';
import { requireProvider } from './provider/provider-copy.ts';
import { createReminderMetrics } from './reminder/reminder-metrics.ts';
import { startReminders } from './reminder/start-reminders.ts';
import { createSlotMetrics } from './slot/slot-metrics.ts';
import { calendarSubscriptions } from './subscriptions.ts';

/** How many providers' pages a process remembers. */
const maxPageTenants = 10_000;

/** Assembles the service, for the process as well as the tests. */
export function createCalendarService(config: Config, logger: Logger): Promise<RunningService> {
  return createService<CalendarSchema>({
    name: 'calendar',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, metrics, connect, use }) => {
      const { archiveAfterDays, anonymiseAfterDays } = config;
      const identity = connect(IdentityServiceService, 'identity', config.identityAddress);
      const bookings = createBookingMetrics(metrics);
      const sweeper =
        config.reservationSweeper === 'on' ? use(startReservationSweeper({ database, bookings, logger })) : undefined;
      const reminders = use(startReminders({ database, metrics: createReminderMetrics(metrics, database), logger }));
      const hoursMade = createHoursMetrics(metrics, database);
      const making = use(startMaking({ database, metrics: hoursMade, logger }));
      const dependencies: CalendarDependencies = {
        database,
        identity,
        providers: createProviderCache((key) => requireProvider({ database, identity }, key)),
        customers: connect(CustomerServiceService, 'customer', config.customerAddress),
        links: createLinkTokens(config.linkKeys),
        pageTenants: new LRUCache({ max: maxPageTenants }),
        archiveAfterDays,
        bookings,
        slots: createSlotMetrics(metrics),
        pages: createPageMetrics(metrics),
        hoursMade,
        onClockSet: () => {
          sweeper?.wake();
          reminders.wake();
          making.wake();
        },
      };
      use(startCopyRefresher(dependencies, logger));
      return {
        hosted: hostCalendarServices(dependencies),
        operators: [
          hostMailLinkService(dependencies),
          hostHoursOverviewService(dependencies),
          hostProviderErasureService(dependencies),
        ],
        subscriptions: calendarSubscriptions(dependencies),
        cleanUps: calendarCleanUps(dependencies, anonymiseAfterDays),
      };
    },
  });
}
