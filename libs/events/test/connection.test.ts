import { encodeAccount, encodeOperator, encodeUser, fmtCreds } from '@nats-io/jwt';
import { createAccount, createOperator, createUser } from '@nats-io/nkeys';
import { connect } from '@nats-io/transport-node';
import { freePort, type NatsServer, startNats } from '@scheduling/embedded';
import { createMetrics, type Logger } from '@scheduling/runtime';
import {
  createCertificateAuthority,
  eventually,
  forwardFromIpv6,
  hasIpv6,
  startTestNats,
  storeCertificate,
  sumSamples,
} from '@scheduling/testing';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { connectionOptions } from '../src/connection-options.ts';
import { type Broker, connectBroker, events, inspectNats, isRejectedUser, type NatsSettings } from '../src/index.ts';

let resources: AsyncDisposableStack;
let folder: string;
let port: number;
/** Everything that was logged, as JSON. */
let logged: string[];

beforeEach(async () => {
  resources = new AsyncDisposableStack();
  folder = await mkdtemp(join(tmpdir(), 'connection-test-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  port = await freePort();
  logged = [];
});
afterEach(() => resources.disposeAsync());

/** Starts nats-server on the same port and data each time. */
async function serve(configuration: string): Promise<NatsServer> {
  return resources.use(await startNats({ dataDir: folder, port, users: { configuration, environment: {} } }));
}

const users = (password: string) => `authorization { users = [ { user: calendar, password: "${password}" } ] }`;
const urlFor = (password: string, protocol = 'nats') =>
  `${protocol}://calendar:${encodeURIComponent(password)}@localhost:${port}`;

function open(
  settings: string | NatsSettings,
  name = 'calendar',
): { broker: Broker; isConnected: () => Promise<number | undefined> } {
  const metrics = createMetrics('test');
  const log = (fields: unknown, message?: string): void =>
    void logged.push(JSON.stringify([fields, message, String((fields as { err?: unknown }).err)]));
  const logger = { warn: log, info: log } as unknown as Logger;
  const broker = resources.use(
    connectBroker({ ...(typeof settings === 'string' ? { url: settings } : settings), name, logger, metrics }),
  );
  return { broker, isConnected: async () => sumSamples(await metrics.metrics(), 'scheduling_nats_connected') };
}

const rejections = () => logged.filter((line) => line.includes('NATS rejects the user'));

describe('a connection to NATS', () => {
  it('uses the user and the password of the URL, decoded', async () => {
    await serve(users('p@ss:w/rd% ä'));
    const { isConnected } = open(urlFor('p@ss:w/rd% ä'));
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('uses a user without a password as a token', async () => {
    await serve('authorization { token: "s3cret token" }');
    const { isConnected } = open(`nats://${encodeURIComponent('s3cret token')}@localhost:${port}`);
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('uses the NKey in a file, and another one when the file is replaced', async () => {
    const [first, second] = [createUser(), createUser()];
    const credentialsFile = join(folder, 'calendar.nk');
    const permit = (key: typeof first) => serve(`authorization { users = [ { nkey: ${key.getPublicKey()} } ] }`);
    await writeFile(credentialsFile, `${Buffer.from(first.getSeed()).toString()}\n`);
    const server = await permit(first);
    const { isConnected } = open({ url: `nats://localhost:${port}`, credentialsFile });
    await eventually(async () => expect(await isConnected()).toBe(1));
    await server.stop();
    await permit(second);
    await eventually(async () => expect(rejections()).toHaveLength(1));
    expect(await isConnected()).toBe(0);
    await writeFile(credentialsFile, second.getSeed());
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('uses the credentials in a file', async () => {
    const [operator, account, system, user] = [createOperator(), createAccount(), createAccount(), createUser()];
    const signed = async (name: string, key: typeof account): Promise<string> => {
      const token = await encodeAccount(
        name,
        key,
        { limits: { conn: -1, subs: -1, data: -1, payload: -1 } },
        { signer: operator },
      );
      return `${key.getPublicKey()}: ${token}`;
    };
    const accounts = `resolver: MEMORY\nresolver_preload: {\n${await signed('scheduling', account)}\n${await signed('system', system)}\n}`;
    await serve(
      `operator: ${await encodeOperator('owner', operator)}\nsystem_account: ${system.getPublicKey()}\n${accounts}`,
    );
    const credentialsFile = join(folder, 'calendar.creds');
    await writeFile(credentialsFile, fmtCreds(await encodeUser('calendar', user, account), user));
    const { isConnected } = open({ url: `nats://localhost:${port}`, credentialsFile });
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('is re-established although the clock was set back meanwhile', async () => {
    const server = await serve(users('s3cret'));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 });
    const { isConnected } = open(urlFor('s3cret'));
    try {
      await eventually(async () => expect(await isConnected()).toBe(1));
      await server.stop();
      await eventually(async () => expect(await isConnected()).toBe(0));
    } finally {
      vi.useRealTimers();
    }
    await serve(users('s3cret'));
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('says that events may have been missed when it is established, if somebody listens', async () => {
    const { broker } = open(urlFor('s3cret'));
    let calls = 0;
    broker.listen(events.apiKeyRevoked, () => undefined);
    broker.onReconnect(() => {
      calls += 1;
    });
    await serve(users('s3cret'));
    await eventually(() => expect(calls).toBe(1));
  });

  it('that is rejected is retried until the password is valid, and logged without the password', async () => {
    const server = await serve(users('new'));
    const { isConnected } = open(urlFor('old-s3cret'));
    await eventually(() => expect(rejections()).toHaveLength(1));
    expect(await isConnected()).toBe(0);
    await expect(inspectNats({ url: urlFor('old-s3cret') })).rejects.toSatisfy(isRejectedUser);
    await server.stop();
    await serve(users('old-s3cret'));
    await eventually(async () => expect(await isConnected()).toBe(1));
    expect(rejections()).toHaveLength(1);
    expect(logged.join()).not.toContain('s3cret');
  });

  it('whose password changes is lost, and re-established when it is valid again, however often it was rejected', async () => {
    const server = await serve(users('first'));
    const { broker, isConnected } = open(urlFor('first'));
    await eventually(async () => expect(await isConnected()).toBe(1));
    let reconnects = 0;
    broker.onReconnect(() => (reconnects += 1));
    await server.stop();
    const other = await serve(users('second'));
    await eventually(async () => expect(rejections()).toHaveLength(1));
    expect(await isConnected()).toBe(0);
    // The client gives up at the second rejection unless it is told not to.
    await eventually(async () =>
      expect(
        (await readFile(join(folder, 'logs/nats.log'), 'utf8')).match(/authentication error/g)?.length,
      ).toBeGreaterThan(3),
    );
    await other.stop();
    await serve(users('first'));
    await eventually(async () => expect(await isConnected()).toBe(1));
    expect({ reconnects, rejections: rejections().length }).toEqual({ reconnects: 1, rejections: 1 });
    expect(logged.filter((line) => line.includes('lost the connection'))).toHaveLength(1);
  });

  it('with tls:// is never established in plain text', async () => {
    await serve(users('secret'));
    await expect(inspectNats({ url: urlFor('secret', 'tls') })).rejects.toThrow(/tls/);
    const { isConnected } = open(urlFor('secret', 'tls'));
    await eventually(() => expect(logged.join()).toMatch(/server does not support 'tls'/));
    expect(await isConnected()).toBe(0);
  });

  it('with tls:// is established if the authority of the certificate is trusted', async () => {
    const authority = await createCertificateAuthority();
    const files = await storeCertificate(folder, await authority.issue('localhost'), authority);
    await serve(`tls { cert_file: "${files.certificate}", key_file: "${files.key}" }`);
    await expect(inspectNats({ url: urlFor('secret', 'tls') })).rejects.toThrow(/certificate/);
    const trusted = getCACertificates();
    setDefaultCACertificates([...trusted, authority.cert]);
    try {
      expect(await inspectNats({ url: urlFor('secret', 'tls') })).toMatchObject({ requiresUser: false });
    } finally {
      setDefaultCACertificates(trusted);
    }
  });

  it('trusts the authority in a file, and shows its own certificate to a server that demands one', async () => {
    const [authority, another] = [await createCertificateAuthority(), await createCertificateAuthority()];
    const files = await storeCertificate(join(folder, 'server'), await authority.issue('localhost'), authority);
    await serve(
      `tls { cert_file: "${files.certificate}", key_file: "${files.key}", ca_file: "${files.authorities}", verify: true }`,
    );
    const own = await storeCertificate(join(folder, 'own'), await another.issue('calendar'), authority);
    const settings = {
      url: `tls://localhost:${port}`,
      tlsFiles: { caFile: own.authorities, certFile: own.certificate, keyFile: own.key },
    };
    await expect(inspectNats({ ...settings, tlsFiles: { caFile: own.authorities } })).rejects.toThrow(
      /certificate|ECONNRESET|closed/,
    );
    const { isConnected } = open(settings);
    await eventually(() => expect(logged.join()).toContain('NATS does not respond'));
    expect(await isConnected()).toBe(0);
    // As in a rotation: without a restart of this process.
    await storeCertificate(join(folder, 'own'), await authority.issue('calendar'), authority);
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('with tls:// goes to the next server if one does not answer, and the doctor reads the state there', async () => {
    const authority = await createCertificateAuthority();
    const files = await storeCertificate(folder, await authority.issue('localhost'), authority);
    await serve(`tls { cert_file: "${files.certificate}", key_file: "${files.key}" }`);
    const settings = {
      url: `tls://localhost:${await freePort()},localhost:${port}`,
      tlsFiles: { caFile: files.authorities },
    };
    expect(await inspectNats(settings)).toMatchObject({ requiresUser: false });
    const { isConnected } = open(settings);
    await eventually(async () => expect(await isConnected()).toBe(1));
  });

  it('leads to an address of IPv6', async ({ skip }) => {
    skip(!hasIpv6(), 'this machine has no IPv6');
    await serve(users('s3cret'));
    await using forwarding = await forwardFromIpv6(port);
    const url = `nats://calendar:s3cret@[::1]:${forwarding.port},[::1]:${await freePort()}`;
    expect(await inspectNats({ url })).toMatchObject({ requiresUser: true });
  });

  it('with files for TLS is never established in plain text', async () => {
    await serve(users('secret'));
    const { cert } = await createCertificateAuthority();
    const caFile = join(folder, 'ca.crt');
    await writeFile(caFile, cert);
    await expect(inspectNats({ url: urlFor('secret'), tlsFiles: { caFile } })).rejects.toThrow(/tls/);
  });
});

describe('listening to events', () => {
  it('survives a malformed one', async () => {
    await using nats = await startTestNats();
    const { broker } = open(nats.url('gateway'), 'gateway');
    const heard: string[] = [];
    let reconnects = 0;
    broker.onReconnect(() => (reconnects += 1));
    broker.listen(events.apiKeyRevoked, ({ keyHash }) => heard.push(Buffer.from(keyHash).toString()));
    const publisher = await connect(connectionOptions({ url: nats.url('identity') }, 'identity'));
    resources.defer(() => publisher.close());
    await eventually(() => {
      publisher.publish(events.apiKeyRevoked.subject, 'not protobuf');
      publisher.publish(
        events.apiKeyRevoked.subject,
        events.apiKeyRevoked.encode({ crmId: 'crm', keyHash: Buffer.from('hash') }),
      );
      expect(heard.length).toBeGreaterThan(2);
    });
    expect(logged.filter((line) => line.includes('ignored a malformed event')).length).toBeGreaterThan(2);
    // The one is when it began to listen.
    expect({ connected: broker.connected, reconnects }).toEqual({ connected: true, reconnects: 1 });
  });

  it('counts as not connected while the permissions do not include it, until they do', async () => {
    const permitting = (subject: string) =>
      `authorization { users = [ { user: calendar, password: secret, permissions { subscribe { allow: [ "_INBOX.>", "${subject}" ] } } } ] }`;
    const server = await serve(permitting('others'));
    const { broker, isConnected } = open(urlFor('secret'), 'gateway');
    let reconnects = 0;
    broker.onReconnect(() => (reconnects += 1));
    const heard: string[] = [];
    broker.listen(events.crmChanged, ({ crmId }) => heard.push(crmId));
    await eventually(() => expect(logged.join()).toContain('the permissions of the NATS user do not suffice'));
    expect({ connected: broker.connected, gauge: await isConnected() }).toEqual({ connected: false, gauge: 0 });
    await eventually(() => expect(reconnects).toBe(1));
    const configuration = join(folder, 'nats/nats.conf');
    await writeFile(
      configuration,
      (await readFile(configuration, 'utf8')).replace('others', events.crmChanged.subject),
    );
    process.kill(server.pid, 'SIGHUP');
    await eventually(() => expect(broker.connected).toBe(true));
    // What was published in the meantime is lost, as without a connection.
    expect(reconnects).toBe(2);
    const publisher = await connect(connectionOptions({ url: urlFor('secret') }, 'calendar'));
    resources.defer(() => publisher.close());
    publisher.publish(events.crmChanged.subject, events.crmChanged.encode({ crmId: 'crm' }));
    await eventually(() => expect(heard).toEqual(['crm']));
  });
});
