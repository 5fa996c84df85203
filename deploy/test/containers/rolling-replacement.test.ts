import { eventually } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { services } from '../service-configuration.ts';
import { type Cluster, createCluster } from './cluster/cluster.ts';
import { createCrm, gatewayUrls, inboxUrl } from './composed-system.ts';
import { plainProject } from './docker.ts';
import { isCalm, type Load, startLoad, waitForAnswers } from './load.ts';

const project = plainProject(inject('composeProject'));

/**
 * All services at once, as `kubectl apply` does it. The gateways' client is this test, which behaves like a Service: it
 * sends requests to a gateway that is ready, and none to one that is about to stop. The clients of the other services
 * are told nothing: they see connections end, and resolve names that the DNS answers as they were up to 30 s ago.
 */
describe.skipIf(project.name === '').each([1, 2, 3])(
  'a rolling replacement of every service, %i of each, under load (needs a container engine)',
  (replicas) => {
    let cluster: Cluster;
    let load: Load;
    beforeAll(async () => {
      cluster = await createCluster(project);
      await cluster.scale(services, replicas);
      load = await startLoad(await gatewayUrls(project), await createCrm(project));
    });
    afterAll(() => load?.stop());

    it('fails no request', async ({ skip }) => {
      if (!(await isCalm(load))) skip('this machine is too busy: requests fail while nothing is replaced');
      await Promise.all(services.map((service) => cluster.rollOut(service, load.gateways)));
      await waitForAnswers(load);
      expect(load.failures).toEqual([]);
    });

    it('served hundreds of requests of every service', async () => {
      await load.stop();
      process.stdout.write(`answered while ${replicas} of each were replaced: ${JSON.stringify(load.answered)}\n`);
      for (const answers of Object.values(load.answered) as number[]) expect(answers).toBeGreaterThan(200);
    });

    it('sent one mail for every booking', async () => {
      const inbox = await inboxUrl(project);
      for (const [address, bookings] of load.bookers) {
        // If a connection was cut during a delivery, its mail may have arrived twice, with the same Message-ID.
        await eventually(async () =>
          expect(await messageIds(inbox, address), address).toHaveProperty('size', bookings),
        );
      }
    });
  },
);

async function messageIds(inbox: string, address: string): Promise<Set<string>> {
  const response = await fetch(`${inbox}/api/email?to.address=${encodeURIComponent(address)}`);
  const mails = (await response.json()) as { headers: Record<string, string> }[];
  return new Set(mails.map(({ headers }) => headers['message-id'] ?? ''));
}
