import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type InboxServer, isReachable, processIsAlive, startInbox, waitUntil } from '../src/index.ts';

let dataDir: string;
const servers: InboxServer[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'embedded-inbox-'));
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('embedded inbox', { timeout: 60_000 }, () => {
  it('shows mails, even after a restart, and logs neither their addresses nor their subjects', async () => {
    const first = await start();
    await sendMail(first.smtpPort, 'Your appointment');
    expect(await firstSubject(first)).toBe('Your appointment');
    await first.stop();
    expect(await processIsAlive(first.pid)).toBe(false);
    expect(await isReachable(first.webPort)).toBe(false);
    // Everything that it writes is in the file when it has ended.
    expect(await readFile(join(dataDir, 'logs', 'inbox.log'), 'utf8')).not.toMatch(/@example\.com|Your appointment/);

    const second = await startInbox({ dataDir, smtpPort: first.smtpPort, webPort: first.webPort });
    servers.push(second);
    expect(second.smtpUrl).toBe(first.smtpUrl);
    expect(await firstSubject(second)).toBe('Your appointment');
  });

  it('says in its log why it does not start', async () => {
    const first = await start();
    await expect(startInbox({ dataDir, smtpPort: first.smtpPort })).rejects.toThrow(/EADDRINUSE/);
  });
});

async function start(): Promise<InboxServer> {
  const server = await startInbox({ dataDir });
  servers.push(server);
  return server;
}

function firstSubject(server: InboxServer): Promise<string> {
  return waitUntil(
    async () => {
      const mails = (await (await fetch(`${server.webUrl}/api/email`)).json()) as { subject: string }[];
      return mails[0]?.subject;
    },
    { what: 'a mail in the inbox', timeoutMs: 30_000 },
  );
}

async function sendMail(port: number, subject: string): Promise<void> {
  const message = `From: from@example.com\r\nTo: to@example.com\r\nSubject: ${subject}\r\n\r\nHello.\r\n.`;
  const lines = ['HELO test', 'MAIL FROM:<from@example.com>', 'RCPT TO:<to@example.com>', 'DATA', message, 'QUIT'];
  const socket = createConnection({ host: '127.0.0.1', port });
  for await (const answer of createInterface(socket)) {
    if (!/^[23]/.test(answer)) throw new Error(answer);
    const line = lines.shift();
    if (line === undefined) break;
    socket.write(`${line}\r\n`);
  }
  socket.destroy();
}
