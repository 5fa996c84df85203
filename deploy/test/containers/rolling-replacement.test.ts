import { eventually } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { services } from '../service-configuration.ts';
import { createCrm, gatewayUrl, gatewayUrls, inboxUrl } from './composed-system.ts';
import { compose, docker, inspectContainer, listContainers } from './docker.ts';
import { type Answered, type Load, startLoad } from './load.ts';

const project = inject('composeProject');
/** Responses of every kind required before the next change, so that the new set of containers has received all kinds of requests. */
const answersBetween = 20;
const answersTimeoutMs = 120_000;
const calmAttempts = 10;
/** A machine that is briefly busy with other work cannot answer within 2 s; that 503 is not the fault of the replacement. */
const timed = { timeout: 600_000, retry: 2 };

describe.skipIf(project === '')('a rolling replacement under load (needs a container engine)', () => {
  let load: Load;
  beforeAll(async () => {
    load = await startLoad(await gatewayUrls(project), await createCrm(project));
  });
  afterAll(() => load?.stop());

  it.for(services)('of every container of %s fails no request', timed, async (service, { skip }) => {
    if (!(await isCalm(load))) skip('this machine is too busy: requests fail while nothing is replaced');
    const old = await listContainers(project, service);
    await startOthers(service, old, load);
    for (const id of old) {
      await stop(service, id, load);
      await waitForAnswers(load);
    }
    expect(load.failures).toEqual([]);
  });

  it('served hundreds of requests of every service', async () => {
    await load.stop();
    process.stdout.write(`answered while everything was replaced: ${JSON.stringify(load.answered)}\n`);
    for (const answers of Object.values(load.answered) as number[]) expect(answers).toBeGreaterThan(200);
  });

  it('sent one mail for every booking', async () => {
    const inbox = await inboxUrl(project);
    for (const [address, bookings] of load.bookers) {
      // If a connection was cut during a delivery, its mail may have arrived twice, with the same Message-ID.
      await eventually(async () => expect(await messageIds(inbox, address), address).toHaveProperty('size', bookings));
    }
  });
});

/**
 * Once the new ones are ready, the old ones get SIGTERM, one shortly after the other: a Deployment with maxUnavailable 0 is no harsher. The gateways'
 * client is this test, which behaves like a Service: it sends requests to a gateway that is ready, none to one that is about to stop, and waits for those
 * in flight, as preStop does. Clients of the other services are not notified: they see connections end, and have to find the new containers.
 */
async function startOthers(service: string, old: readonly string[], { gateways }: Load): Promise<void> {
  await compose(project, 'up', '--detach', '--wait', '--no-deps', '--no-recreate', `--scale=${service}=${2 * old.length}`, service);
  const others = (await listContainers(project, service)).filter((id) => !old.includes(id));
  expect(others).toHaveLength(old.length);
  if (service !== 'gateway') return;
  for (const id of others) gateways.add(await gatewayUrl(id));
}

async function stop(service: string, id: string, { gateways }: Load): Promise<void> {
  if (service === 'gateway') await gateways.remove(await gatewayUrl(id));
  await docker(['stop', id]);
  expect((await inspectContainer(id)).State).toMatchObject({ ExitCode: 0, OOMKilled: false });
  await docker(['rm', id]);
}

/** Whether all requests succeed while nothing is replaced, within a few attempts. */
async function isCalm(load: Load): Promise<boolean> {
  for (let attempt = 0; attempt < calmAttempts; attempt += 1) {
    load.failures.length = 0;
    await waitForAnswers(load);
    if (load.failures.length === 0) return true;
  }
  return false;
}

/** Returns early when a request fails. */
async function waitForAnswers({ answered, failures }: Load): Promise<void> {
  const before = { ...answered };
  const isEnough = (): boolean => Object.entries(answered).every(([kind, answers]) => answers - before[kind as keyof Answered] >= answersBetween);
  await vi.waitFor(() => expect(failures.length > 0 || isEnough()).toBe(true), { timeout: answersTimeoutMs, interval: 50 });
}

async function messageIds(inbox: string, address: string): Promise<Set<string>> {
  const response = await fetch(`${inbox}/api/email?to.address=${encodeURIComponent(address)}`);
  const mails = (await response.json()) as { headers: Record<string, string> }[];
  return new Set(mails.map(({ headers }) => headers['message-id'] ?? ''));
}
