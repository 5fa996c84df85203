import { waitUntil, withClient } from '@scheduling/embedded';
import { consumingServices } from '@scheduling/events';
import { type DatabaseService, databaseServices, host } from '@scheduling/stack';
import { sumSamples } from '@scheduling/testing/metric-samples';
import type { System } from '../system/start-system.ts';
import type { Violation } from './evidence.ts';

/**
 * An erasure may take 10 minutes (interface 4.4), everything else takes seconds; an event that was not acknowledged
 * comes again after 15.
 */
const drainMs = 180_000;
const settledRounds = 3;
/**
 * A relay with nothing to publish looks every 10 s whether the stream is still there; before that, what was lost is not
 * among what waits.
 */
const detectionMs = 12_000;
const reportMs = 10_000;

/** What must come to zero, and in which services it is measured. */
const gauges: [string, readonly DatabaseService[]][] = [
  ['scheduling_outbox_unsent_events', databaseServices],
  ['scheduling_outbox_refilling', databaseServices],
  ['scheduling_consumer_lag_events', consumingServices],
  ['scheduling_erasures_open', ['customer']],
  ['scheduling_mails_pending', ['notification']],
  ['scheduling_events_waiting', ['webhook']],
  ['scheduling_dead_letters', consumingServices],
];

/**
 * I6: when everything is whole again, every event is published and processed, every mail sent and every erasure
 * complete, and there is no dead letter.
 *
 * @param lastFaultMs when the last fault ended, on the clock of `performance`
 */
export async function waitUntilDrained(
  system: System,
  lastFaultMs: number,
  onProgress: (text: string) => void,
): Promise<Violation[]> {
  let last: string[] = [];
  let calm = 0;
  let nextReportMs = performance.now() + reportMs;
  const isDrained = async (): Promise<boolean> => {
    await hastenUncertainMails(system);
    last = await readBacklog(system);
    calm = last.length === 0 && performance.now() > lastFaultMs + detectionMs ? calm + 1 : 0;
    if (performance.now() > nextReportMs) {
      nextReportMs += reportMs;
      if (last.length > 0) onProgress(`waiting: ${last.join(', ')}`);
    }
    return calm >= settledRounds;
  };
  try {
    await waitUntil(isDrained, { what: 'an empty backlog', timeoutMs: drainMs, intervalMs: 500 });
    return [];
  } catch {
    return last.map((text) => ({ invariant: 'I6', text }));
  }
}

/** What is not zero, or not known. */
async function readBacklog(system: System): Promise<string[]> {
  const texts = new Map<DatabaseService, string>();
  for (const service of databaseServices) texts.set(service, await scrape(system, service));
  return gauges.flatMap(([name, measuredIn]) =>
    measuredIn.flatMap((service) => {
      const value = sumSamples(texts.get(service)!, name);
      return value === 0 ? [] : [`${name} of ${service} is ${value ?? 'not known'}`];
    }),
  );
}

/** Empty while no process of the service is ready. */
async function scrape({ groups }: System, service: DatabaseService): Promise<string> {
  const replica = groups[service].ready[0];
  if (replica === undefined) return '';
  const response = await fetch(`http://${host}:${replica.ports.metrics}/metrics`, {
    signal: AbortSignal.timeout(5_000),
  });
  return response.text();
}

/** A mail of which nobody knows whether the server has it is sent again after 10 minutes: let them be over. */
async function hastenUncertainMails({ postgres }: System): Promise<void> {
  await withClient(postgres.url('notification'), (client) =>
    client.query(
      `UPDATE mail SET due_at = now() WHERE state = 'pending' AND uncertain AND lease IS NULL AND due_at > now() + interval '1 minute'`,
    ),
  );
}
