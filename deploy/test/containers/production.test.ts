import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { databaseServices, natsServices } from '@scheduling/runtime';
import { eventually } from '@scheduling/testing';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { deployFolder } from '../kustomizations.ts';
import { services } from '../service-configuration.ts';
import { type Cluster, createCluster } from './cluster/cluster.ts';
import { createCrm, gatewayUrls, inboxUrl, query, runAdmin, runDemo } from './composed-system.ts';
import { compose, docker, listContainers, plainProject, type Project } from './docker.ts';
import { asPrinted, describeRestores } from './restores.ts';
import { isCalm, type Load, startLoad, waitForAnswers } from './load.ts';

const natsUsers = [...natsServices, 'doctor'];
const run = promisify(execFile);
const secret = (): string => `p${randomBytes(12).toString('hex')}`;
const variable = (name: string, rest: string): string => `${name.toUpperCase()}_${rest}`;
const newPasswords = (names: readonly string[], rest: string) =>
  Object.fromEntries(names.map((name) => [variable(name, rest), secret()]));

/** With one system of its own, which has what compose.yaml has not. */
describe.skipIf(inject('composeProject') === '')(
  'the system of compose.production.yaml (needs a container engine)',
  () => {
    let folder: string;
    let project: Project;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'production-test-'));
      await createCertificates();
      const plain = plainProject(`scheduling-test-${randomUUID().slice(0, 8)}`);
      project = {
        name: plain.name,
        files: [
          'compose.yaml',
          'compose.production.yaml',
          'test/containers/cluster/compose.yaml',
          'test/containers/cluster/production.yaml',
        ],
        environment: {
          ...plain.environment,
          CERTIFICATES: join(folder, 'certificates'),
          BACKUPS: join(folder, 'backups'),
          PUBLIC_HOST: 'scheduling.example.com',
          SMTP_URL: 'smtp://inbox:1025?requireTLS=false',
          SENDER_ADDRESS: 'no-reply@scheduling.example',
          WEBHOOK_SECRET_KEYS: `1:${randomBytes(32).toString('base64')}`,
          LINK_KEYS: `1:${randomBytes(32).toString('base64')}`,
          DATABASE_PASSWORD: secret(),
          ...newPasswords(databaseServices, 'DATABASE_PASSWORD'),
          ...newPasswords(natsUsers, 'NATS_PASSWORD'),
        },
      };
      await compose(project, 'up', '--build', '--wait');
    });
    afterAll(async () => {
      // The backups belong to a user of the container.
      const chmod = ['--entrypoint', 'chmod', 'postgres', '-R', 'a+rwX', '/backup'];
      await compose(project, 'run', '--rm', '--no-deps', '-T', ...chmod);
      await compose(project, 'down', '--volumes', '--timeout', '15');
      await rm(folder, { recursive: true, force: true });
    });

    const createCertificates = () =>
      run(join(deployFolder, 'compose/create-certificates.sh'), [join(folder, 'certificates')]);

    it('plays the demo, and has no faults according to the doctor', async () => {
      const crm = await createCrm(project);
      const [gateway] = await gatewayUrls(project);
      await writeFile(join(folder, 'stack.json'), JSON.stringify({ gateway, inbox: await inboxUrl(project), ...crm }));
      expect(await runDemo({ SCHEDULING_DATA: folder, WEBHOOK_INBOX_HOST: 'host.docker.internal' })).toContain(
        'And a webhook has notified the CRM',
      );
      await eventually(async () =>
        expect(await runAdmin(project, 'doctor')).toMatch(/^0 faults, \d+ warnings, \d+ ok, 0 not checked$/m),
      );
    });

    it('encrypts every connection to Postgres, and accepts none in plain text to NATS', async () => {
      expect(
        await query(
          project,
          "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename IN ('identity', 'calendar', 'customer', 'notification', 'webhook')",
        ),
      ).toBe('t');
      const { password } = new URL(`tls://gateway:${project.environment['GATEWAY_NATS_PASSWORD']}@nats`);
      expect(await publishForged(`{ user: 'gateway', pass: '${password}' }`)).toMatch(/certificate|secure|tls/i);
    });

    it('refuses forged events', async () => {
      const tls = "tls: { caFile: '/certificates/ca.crt' }";
      const asGateway = `{ user: 'gateway', pass: '${project.environment['GATEWAY_NATS_PASSWORD']}', ${tls} }`;
      expect(await publishForged(asGateway)).toMatch(/permissions violation/i);
      expect(await publishForged(`{ ${tls} }`)).toMatch(/authorization/i);
    });

    /** Tries to have a person erased, from the container of the gateway. Returns what NATS answers. */
    async function publishForged(options: string): Promise<string> {
      const script = `
      const { connect } = require('@nats-io/transport-node');
      connect({ servers: 'nats:4222', reconnect: false, timeout: 3000, ...${options} })
        .then(async (connection) => {
          for await (const { type, error } of (connection.publish('scheduling.customer.v1.customer-erasure-requested', 'x'), connection.status())) {
            if (type === 'error') { console.log(error.message); process.exit(); }
          }
        })
        .catch((error) => console.log(error.message));`;
      return compose(project, 'exec', '-T', 'gateway', 'node', '--eval', script);
    }

    describeRestores(() => project);

    describe('with two replicas, under load', () => {
      let cluster: Cluster;
      let load: Load;
      beforeAll(async () => {
        cluster = await createCluster(project);
        await cluster.scale(services, 2);
        load = await startLoad(await gatewayUrls(project), await createCrm(project));
      });
      afterAll(() => load?.stop());

      it('replaces all certificates without a failed request', async ({ skip }) => {
        if (!(await isCalm(load))) skip('this machine is too busy: requests fail while nothing is replaced');
        await createCertificates();
        await asPrinted(project, printedCommands('reload certificates'));
        for (const service of services) {
          for (const id of await listContainers(project, service))
            await eventually(async () => expect(await docker(['logs', id])).toContain('reloaded the gRPC certificate'));
        }
        await waitForAnswers(load);
        expect(load.failures).toEqual([]);
      });

      it('replaces all passwords without a failed request', async ({ skip }) => {
        if (!(await isCalm(load))) skip('this machine is too busy: requests fail while nothing is replaced');
        await addSecondRoles();
        Object.assign(project.environment, newPasswords(natsUsers, 'NATS_PASSWORD'));
        await compose(project, 'up', '--detach', '--wait', '--no-deps', 'nats');
        await Promise.all(services.map((service) => cluster.rollOut(service, load.gateways)));
        await waitForAnswers(load);
        for (const service of databaseServices) await query(project, `ALTER ROLE ${service} PASSWORD NULL`);
        await waitForAnswers(load);
        expect(load.failures).toEqual([]);
        expect(
          await query(project, "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname <> 'postgres' ORDER BY 1"),
        ).toBe(
          databaseServices
            .map((service) => `${service}_2`)
            .toSorted()
            .join('\n'),
        );
      });

      /** As docs/operations.md says, so that the roles before and after are both valid for a while. */
      async function addSecondRoles(): Promise<void> {
        for (const service of databaseServices) {
          const password = secret();
          for (const sql of [
            `CREATE ROLE ${service}_2 LOGIN IN ROLE ${service} PASSWORD '${password}'`,
            `ALTER ROLE ${service}_2 SET role = '${service}'`,
          ])
            await query(project, sql);
          Object.assign(project.environment, {
            [variable(service, 'DATABASE_USER')]: `${service}_2`,
            [variable(service, 'DATABASE_PASSWORD')]: password,
          });
        }
      }
    });
  },
);
