import { ConsumerServiceService } from '@scheduling/contracts/operations/v1';
import {
  type ConsumerReport,
  type ConsumingService,
  consumingServices,
  inspectNats,
  isDenied,
  isRejectedUser,
  type NatsReport,
  type StreamReport,
  streamSettings,
} from '@scheduling/events';
import { createClient } from '@scheduling/rpc';
import { reasonOf } from '@scheduling/runtime';
import { addressVariable, type System } from '../config.ts';
import { callOptions } from '../call-options.ts';
import { checkClock } from './check-clock.ts';
import { ageOf, fault, type Finding, notChecked, ok, warning } from './finding.ts';

const lagToleranceMs = 60_000;
const hourMs = 3_600_000;

/** Whether the event stream is configured as it should be, and whether every consumer exists and keeps up. */
export async function checkStream(system: System): Promise<Finding[]> {
  if (system.nats === undefined) {
    return ['stream', ...consumingServices.map((service) => `consumers of ${service}`)].map((check) =>
      notChecked(check, 'NATS_URL'),
    );
  }
  const askedMs = Date.now();
  let nats: NatsReport;
  try {
    nats = await inspectNats(system.nats);
  } catch (error) {
    return [describeFailure(error)];
  }
  const { stream: report } = nats;
  if (report === undefined) {
    const remedy =
      'check whether any service is running and reaches NATS: the first one creates the stream and refills it';
    return [checkUsers(nats), fault('stream', 'does not exist', remedy)];
  }
  const answeredMs = Date.now();
  const consumers = consumingServices.map((service) =>
    checkConsumers(service, system.services[service], report.consumers),
  );
  return [
    checkUsers(nats),
    checkSettings(report),
    checkReplicas(report),
    ...(report.serverTime ? [checkClock('NATS', { time: report.serverTime, askedMs, answeredMs })] : []),
    ...(await Promise.all(consumers)).flat(),
  ];
}

function describeFailure(error: unknown): Finding {
  if (isRejectedUser(error))
    return fault('stream', 'NATS rejects the user', 'correct the user and the password in NATS_URL: those of "doctor"');
  if (isDenied(error))
    return fault(
      'stream',
      'the user has no permission to read it',
      'use the user "doctor" in NATS_URL, with the generated permissions',
    );
  const remedy = 'start NATS or correct NATS_URL; meanwhile events wait in the outboxes and nothing is lost';
  return fault('stream', `NATS does not respond: ${reasonOf(error)}`, remedy);
}

function checkUsers({ requiresUser }: NatsReport): Finding {
  if (requiresUser) return ok('users of NATS', 'every client needs one');
  return warning(
    'users of NATS',
    'anyone who can reach NATS can read and publish all events',
    'give each service its own user: deploy/README.md, "Users of NATS"',
  );
}

function checkSettings({ config, messages }: StreamReport): Finding {
  const days = streamSettings.max_age / 86_400e9;
  const wrong = [
    ...(streamSettings.subjects.every((subject) => config.subjects.includes(subject))
      ? []
      : [`its subjects are ${config.subjects.join(', ')}`]),
    ...(config.storage === streamSettings.storage ? [] : [`it is stored in ${config.storage}`]),
    ...(config.retention === streamSettings.retention ? [] : [`its retention is ${config.retention}`]),
    ...(config.max_age === streamSettings.max_age ? [] : [`it keeps events for ${config.max_age / 86_400e9} days`]),
  ];
  if (wrong.length === 0) return ok('stream', `${messages} events, on disk, kept for ${days} days`);
  return fault(
    'stream',
    wrong.join('; '),
    `delete it: the services recreate it with ${streamSettings.subjects.join()}, on disk, ${days} days, and refill it`,
  );
}

function checkReplicas({ config, clustered, laggingReplicas }: StreamReport): Finding {
  const check = 'stream replicas';
  if (laggingReplicas.length > 0)
    return fault(
      check,
      `not up to date: ${laggingReplicas.join(', ')}`,
      'check whether these NATS servers are running and have free disk space',
    );
  if (clustered && config.num_replicas < 3) {
    return warning(
      check,
      `${config.num_replicas} in a cluster of servers`,
      'set NATS_STREAM_REPLICAS=3 for identity, calendar, customer, notification and webhook',
    );
  }
  return ok(check, clustered ? `${config.num_replicas}, all up to date` : '1, NATS is a single server');
}

async function checkConsumers(
  service: ConsumingService,
  address: string | undefined,
  reports: ConsumerReport[],
): Promise<Finding[]> {
  const check = `consumers of ${service}`;
  const own = reports.filter(({ name }) => name.startsWith(`${service}-`));
  if (address === undefined) return [...own.map(checkLag), notChecked(check, addressVariable(service))];
  using client = createClient(ConsumerServiceService, service, address, callOptions());
  try {
    const needed = (await client.listConsumers({})).consumers.map(({ name }) => name);
    const taken = own.filter(({ name }) => needed.includes(name));
    return [comparePresence(check, service, needed, own), ...taken.map(checkLag)];
  } catch (error) {
    return [
      ...own.map(checkLag),
      { check, level: 'not checked', seen: `${service} does not report which it needs: ${reasonOf(error)}` },
    ];
  }
}

function comparePresence(check: string, service: ConsumingService, needed: string[], own: ConsumerReport[]): Finding {
  const missing = needed.filter((name) => !own.some((report) => report.name === name));
  const idle = own.map(({ name }) => name).filter((name) => !needed.includes(name));
  if (missing.length > 0) {
    return fault(
      check,
      `missing: ${missing.join(', ')}`,
      `check whether ${service} reaches NATS: it creates a missing consumer within seconds`,
    );
  }
  if (idle.length > 0) {
    return warning(
      check,
      `nothing consumes from ${idle.join(', ')}`,
      'left by another version: delete it in NATS unless that version will be installed again',
    );
  }
  return ok(check, `all ${needed.length} exist`);
}

function checkLag({ name, pending, unacknowledged, oldest }: ConsumerReport): Finding {
  const check = `lag of ${name}`;
  const now = new Date();
  if (oldest === undefined) return ok(check, 'nothing waits');
  const seen = `${pending} events wait, ${unacknowledged} are being processed, the oldest from ${ageOf(oldest, now)} ago`;
  const ageMs = now.getTime() - oldest.getTime();
  if (ageMs <= lagToleranceMs) return ok(check, seen);
  const remedy = 'read the log of the service for "could not be processed": it names what is unavailable';
  return ageMs > hourMs ? fault(check, seen, remedy) : warning(check, seen, remedy);
}
