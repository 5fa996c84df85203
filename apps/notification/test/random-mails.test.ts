import { connectBroker, consumerName, events, streamName } from '@scheduling/events';
import type { MessagingSchema } from '@scheduling/messaging';
import { createDatabase } from '@scheduling/postgres';
import { longTimeout, type ServiceProcess, testLogger } from '@scheduling/testing';
import { createRandom } from '@scheduling/testing/random';
import { describe, expect, it, vi } from 'vitest';
import {
  assign,
  findOvertaken,
  findUnexplainedCopies,
  findWrongBefore,
  findWrongCalendars,
  findWrongContents,
} from './check-mails.ts';
import { checkProviderMails, desk } from './check-provider-mails.ts';
import { changeWhileDisturbed, quietMs } from './disturbances.ts';
import { startGroup } from './random-changes.ts';
import { crmId, providerReference, startSurroundings, type Surroundings } from './notification-under-test.ts';

const firstSeed = Number(process.env['MAILS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
/** Every run has another seed: MAILS_SEEDS sets how many a run plays. */
const seeds = Array.from({ length: Number(process.env['MAILS_SEEDS'] ?? 1) }, (_, index) => firstSeed + index);

const groupCount = 8;
const changes = 1_440;
const leastParticipations = 500;
/** About half of what the provider is told. */
const providerMailQuota = 300;
/** Mails that say what was before. */
const leastBefore = 15;

describe('mails about bookings that change at random, while what they need is stopped and started', () => {
  it.each(seeds)(
    'arrive once, in order, and leave the right events in calendars, with seed %i',
    { timeout: 600_000 },
    async (seed) => {
      await using surroundings = await startSurroundings();
      Object.assign(surroundings.environment, { PROVIDER_MAILS_PER_HOUR: String(providerMailQuota) });
      await surroundings.bookings.updateBookingRules({
        crmId,
        providerReference,
        notifyProvider: true,
        noHorizon: false,
      });
      const groups = await Promise.all(
        Array.from({ length: groupCount }, (_, index) =>
          startGroup(surroundings, createRandom(seed, index), String(index)),
        ),
      );
      const { notification, unrecorded } = await changeWhileDisturbed(
        surroundings,
        groups,
        changes,
        createRandom(seed, groupCount),
      );
      await using _ = notification;
      await untilQuiet(surroundings);

      const participations = groups.flatMap((group) => group.participations);
      const { arrivals, missing, surplus } = assign(
        participations.flatMap(({ mails }) => mails),
        surroundings.smtp.mails.filter(({ recipients }) => !recipients.includes(desk)),
      );
      const copies = findUnexplainedCopies(arrivals, unrecorded);
      const [contents, before, overtaken, calendars] = [
        findWrongContents(arrivals),
        findWrongBefore(arrivals),
        findOvertaken(arrivals),
        findWrongCalendars(arrivals),
      ];
      expect({ missing, surplus, copies, contents, before, overtaken, calendars }).toEqual({
        missing: [],
        surplus: [],
        copies: [],
        contents: [],
        before: [],
        overtaken: [],
        calendars: [],
      });
      const toProvider = await checkProviderMails(surroundings, participations, surroundings.smtp.mails);
      expect(toProvider.wrong).toEqual([]);
      expect(toProvider.mails).toBeGreaterThan(0);
      expect(toProvider.entries).toBeGreaterThan(0);
      expect(arrivals.filter(({ earlier }) => earlier.length > 0).length).toBeGreaterThanOrEqual(leastBefore);
      expect(participations.length).toBeGreaterThanOrEqual(leastParticipations);
      expect(new Set(arrivals.map(({ template }) => template)).size).toBe(10);
    },
  );
});

/** Resolves once no event and no mail waits anywhere. */
async function untilQuiet({ nats, services, database }: Surroundings): Promise<void> {
  await using broker = connectBroker({ url: nats.url('test'), name: 'test', logger: testLogger('test') });
  const { manager } = await broker.jetStream(AbortSignal.timeout(5_000));
  const open = ({ databaseUrl: url }: ServiceProcess) =>
    createDatabase<MessagingSchema>({ url, applicationName: 'test', logger: testLogger('test'), ...longTimeout });
  await using calendar = open(services.calendar);
  await using customer = open(services.customer);
  const waiting = async () => {
    const unsent = await Promise.all(
      [calendar, customer].map(({ kysely }) =>
        kysely.selectFrom('outbox').select('sentAt').where('sentAt', 'is', null).execute(),
      ),
    );
    const consumers = await Promise.all(
      [events.participationChanged, events.customerErasureRequested].map((event) =>
        manager.consumers.info(streamName, consumerName('notification', event)),
      ),
    );
    const unwritten = await database.kysely
      .selectFrom('unwrittenMail')
      .select('id')
      .unionAll(
        database.kysely
          .selectFrom('providerNotice')
          .select('id')
          .where('state', '=', 'pending')
          .where('template', '<>', 'provider-list'),
      )
      .execute();
    const pending = await database.kysely.selectFrom('mail').select('id').where('state', '=', 'pending').execute();
    return {
      unsent: unsent.flat().length,
      unprocessed: consumers.reduce(
        (sum, { num_pending: waitingEvents, num_ack_pending: inDelivery }) => sum + waitingEvents + inDelivery,
        0,
      ),
      unwritten: unwritten.length,
      pending: pending.length,
    };
  };
  await vi.waitFor(
    async () => expect(await waiting()).toEqual({ unsent: 0, unprocessed: 0, unwritten: 0, pending: 0 }),
    { timeout: quietMs, interval: 200 },
  );
}
