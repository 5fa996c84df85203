import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import { deployFolder } from '../../kustomizations.ts';
import { gatewayUrl } from '../composed-system.ts';
import { compose, docker, inspectContainer, listContainers, type Project, publishedAddress } from '../docker.ts';
import type { Gateways } from '../load.ts';

/**
 * Does to the containers of a project what Kubernetes does to pods: a Service has the addresses of those that are
 * ready, a Deployment replaces them one by one.
 */
export interface Cluster {
  /** Changes the number of replicas of all services, and lets nobody use an address from before. */
  scale(services: readonly string[], replicas: number): Promise<void>;
  /**
   * Replaces every container of a service at the pace of its Deployment, with maxSurge 1 and maxUnavailable 0.
   *
   * @param gateways get the requests of clients. Like the endpoints of a Service, they are updated at once.
   */
  rollOut(service: string, gateways: Gateways): Promise<void>;
}

export async function createCluster(project: Project): Promise<Cluster> {
  const { minReadySeconds, preStopSeconds } = readPace();
  const [dns = ''] = await listContainers(project, 'dns');
  const dnsUrl = `http://${await publishedAddress(dns, 8053)}`;
  const running = new Map<string, string[]>();
  let starting = Promise.resolve();

  const setReady = async (
    service: string,
    ids: readonly string[],
    headers: Record<string, string> = {},
  ): Promise<void> => {
    running.set(service, [...ids]);
    const body = JSON.stringify(await Promise.all(ids.map((id) => addressOf(project, id))));
    await fetch(`${dnsUrl}/${service}`, { method: 'PUT', body, headers });
  };
  /** Until all of them are ready. Compose changes one project at a time. */
  const setReplicas = (scales: Record<string, number>): Promise<void> => {
    const options = Object.entries(scales).map(([service, replicas]) => `--scale=${service}=${replicas}`);
    starting = starting.then(
      async () =>
        void (await compose(
          project,
          'up',
          '--detach',
          '--wait',
          '--no-deps',
          '--no-recreate',
          ...options,
          ...Object.keys(scales),
        )),
    );
    return starting;
  };

  const replaceOne = async (service: string, old: string, gateways: Gateways): Promise<void> => {
    const before = running.get(service) ?? [];
    await setReplicas({ [service]: before.length + 1 });
    const others = (await listContainers(project, service)).filter((id) => !before.includes(id));
    await setReady(service, [...before, ...others]);
    if (service === 'gateway') for (const id of others) gateways.add(await gatewayUrl(id));
    await delay(minReadySeconds * 1_000);
    await setReady(
      service,
      [...before, ...others].filter((id) => id !== old),
    );
    if (service === 'gateway') await gateways.remove(await gatewayUrl(old));
    await delay(preStopSeconds * 1_000);
    await stop(old);
  };

  return {
    scale: async (services, replicas) => {
      await setReplicas(Object.fromEntries(services.map((service) => [service, replicas])));
      for (const service of services)
        await setReady(service, await listContainers(project, service), { 'Cache-Control': 'no-cache' });
    },
    rollOut: async (service, gateways) => {
      for (const old of running.get(service) ?? []) await replaceOne(service, old, gateways);
    },
  };
}

/** Fails if it had to be killed. Its address is free then, and goes to the next container. */
async function stop(id: string): Promise<void> {
  await docker(['stop', id]);
  const { ExitCode, OOMKilled } = (await inspectContainer(id)).State;
  if (ExitCode !== 0 || OOMKilled) throw new Error(`${id} ended with ${ExitCode}${OOMKilled ? ', out of memory' : ''}`);
  await docker(['rm', id]);
}

async function addressOf(project: Project, id: string): Promise<string> {
  return (await inspectContainer(id)).NetworkSettings.Networks[`${project.name}_default`]!.IPAddress;
}

interface DeploymentPace {
  spec: {
    minReadySeconds: number;
    template: { spec: { containers: [{ lifecycle: { preStop: { sleep: { seconds: number } } } }] } };
  };
}

function readPace(): { minReadySeconds: number; preStopSeconds: number } {
  const { spec } = parse(
    readFileSync(join(deployFolder, 'kubernetes/base/service/deployment.yaml'), 'utf8'),
  ) as DeploymentPace;
  return {
    minReadySeconds: spec.minReadySeconds,
    preStopSeconds: spec.template.spec.containers[0].lifecycle.preStop.sleep.seconds,
  };
}
