import { freePort } from '@scheduling/embedded';
import { type ParsedMail, simpleParser } from 'mailparser';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import type { Certificate } from './certificates.ts';

export interface ReceivedMail {
  /** The envelope's recipients. */
  recipients: string[];
  parsed: ParsedMail;
  raw: string;
  /** When it was complete, by the monotonic clock of `performance`. */
  arrivedMs: number;
}

/** A login, which is always accepted. */
export interface ReceivedLogin {
  user: string | undefined;
  /** Whether the password came over TLS. */
  secure: boolean;
}

/**
 * What the server does with a mail instead of accepting it; at the recipient (`rcpt`), or once the whole mail has
 * arrived (`data`).
 */
export type SmtpTrouble =
  | { at: 'rcpt' | 'data'; code: number }
  /** Responds late, but normally. */
  | { at: 'rcpt' | 'data'; hangMs: number }
  | { at: 'rcpt' | 'data'; hangUntil: Promise<void> }
  /** Accepts the mail, but drops the connection before confirming it. */
  | { at: 'data'; dies: true };

export interface TestSmtp extends AsyncDisposable {
  url: string;
  /** In order of arrival. */
  mails: ReceivedMail[];
  logins: ReceivedLogin[];
  /**
   * Called for every recipient and again for the mail; undefined accepts it. `attempt` counts the mails to this
   * recipient from 1.
   */
  trouble: (recipient: string, attempt: number) => SmtpTrouble | undefined;
  /** Closes every connection and refuses new ones, until it is restarted on the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/**
 * A real SMTP server that stores the mails it accepts, and fails on request. It offers STARTTLS if it has a
 * certificate.
 */
export async function startTestSmtp({ certificate }: { certificate?: Certificate } = {}): Promise<TestSmtp> {
  let server: SMTPServer | undefined;
  const port = await freePort();
  const attempts = new Map<string, number>();
  const smtp: TestSmtp = {
    url: `smtp://127.0.0.1:${port}`,
    mails: [],
    logins: [],
    trouble: () => undefined,
    stop: async () => {
      const stopped = server;
      server = undefined;
      if (!stopped) return;
      for (const socket of socketsOf(stopped)) socket.destroy();
      await new Promise<void>((resolve) => stopped.close(resolve));
    },
    start: async () => {
      server = createServer(smtp, attempts, certificate);
      server.listen(port, '127.0.0.1');
      await once(server.server, 'listening');
    },
    [Symbol.asyncDispose]: () => smtp.stop(),
  };
  await smtp.start();
  return smtp;
}

function createServer(smtp: TestSmtp, attempts: Map<string, number>, certificate: Certificate | undefined): SMTPServer {
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: certificate ? [] : ['STARTTLS'],
    ...certificate,
    logger: false,
    closeTimeout: 100,
    onAuth: ({ username }, { secure }, callback) => {
      smtp.logins.push({ user: username, secure });
      callback(null, { user: username });
    },
    onRcptTo: ({ address }, _session, callback) => {
      const attempt = (attempts.get(address) ?? 0) + 1;
      attempts.set(address, attempt);
      const trouble = smtp.trouble(address, attempt);
      answer(trouble?.at === 'rcpt' ? trouble : undefined, callback);
    },
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const recipients = recipientsOf(session);
        const trouble = smtp.trouble(recipients[0]!, attempts.get(recipients[0]!)!);
        if (trouble?.at === 'data' && 'code' in trouble) return answer(trouble, callback);
        void keep(smtp, recipients, Buffer.concat(chunks).toString()).then(() => {
          if (trouble && 'dies' in trouble) socketOf(server, session)?.destroy();
          else answer(trouble?.at === 'data' ? trouble : undefined, callback);
        }, callback);
      });
    },
  });
  // A client that disconnects in the middle is part of the tests.
  server.on('error', () => undefined);
  return server;
}

function answer(trouble: SmtpTrouble | undefined, callback: (error?: Error | null) => void): void {
  if (trouble && 'code' in trouble) callback(Object.assign(new Error('trouble'), { responseCode: trouble.code }));
  else if (trouble && 'hangMs' in trouble) setTimeout(callback, trouble.hangMs).unref();
  else if (trouble && 'hangUntil' in trouble) void trouble.hangUntil.then(() => callback());
  else callback();
}

async function keep(smtp: TestSmtp, recipients: string[], raw: string): Promise<void> {
  const arrivedMs = performance.now();
  smtp.mails.push({ recipients, parsed: await simpleParser(raw), raw, arrivedMs });
}

function recipientsOf(session: SMTPServerSession): string[] {
  return session.envelope.rcptTo.map((recipient) => recipient.address);
}

/** smtp-server keeps its connections in a set that its types do not show. */
interface Connection {
  id: string;
  _socket: Socket;
}

function connectionsOf(server: SMTPServer): Connection[] {
  return [...(server as unknown as { connections: Set<Connection> }).connections];
}

function socketsOf(server: SMTPServer): Socket[] {
  return connectionsOf(server).map((connection) => connection._socket);
}

function socketOf(server: SMTPServer, session: SMTPServerSession): Socket | undefined {
  return connectionsOf(server).find(({ id }) => id === session.id)?._socket;
}
