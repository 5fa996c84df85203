import { asciiDomainOf } from '@scheduling/presentation';
import { withTlsRule } from '@scheduling/runtime';
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { createTransport, type SendMailOptions } from 'nodemailer';
import type { MailContent } from '../db/schema.ts';
import type { MailRow } from './mail-table.ts';

/** How far an attempt got. */
export interface Progress {
  /**
   * Created once a session with the server is established; read to the end when the server has all of the message
   * except its last line.
   */
  message?: Readable;
}

export interface Mailer {
  /**
   * Resolves when the server has accepted the mail. `progress` is kept up to date, so that a failure can be classified.
   */
  send(mail: MailRow, progress: Progress, signal: AbortSignal): Promise<void>;
  /** Closes every connection immediately. */
  close(): void;
}

const connectMs = 15_000;

/** A pool of connections to the mail server. */
export function createMailer(options: { url: string; connections: number; replyMs: number }): Mailer {
  const transport = createTransport({
    url: withTlsRule(options.url),
    pool: true,
    maxConnections: options.connections,
    // The delivery decides about a mail whose connection was lost.
    maxRequeues: 0,
    connectionTimeout: connectMs,
    greetingTimeout: options.replyMs,
    socketTimeout: options.replyMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const progresses = new WeakMap<AbortSignal, Progress>();
  transport.use('stream', (mail, callback) => {
    const progress = progresses.get(mail.data.signal!)!;
    mail.message?.processFunc((message) => {
      progress.message = message;
      return message;
    });
    callback();
  });
  return {
    send: async (mail, progress, signal) => {
      progresses.set(signal, progress);
      await transport.sendMail({ ...toMessage(mail, mail.content!), signal });
    },
    close: () => transport.close({ force: true }),
  };
}

/** The message as nodemailer expects it: every part is passed separately, nothing is parsed from text. */
export function toMessage(
  mail: Pick<MailRow, 'eventId' | 'aboutId' | 'template' | 'requestId'>,
  content: MailContent,
): SendMailOptions {
  const [calendar] = content.calendars;
  return {
    messageId: messageIdOf(mail, content.from.address),
    from: content.from,
    replyTo: content.replyTo,
    to: content.to,
    envelope: { from: content.from, to: [content.to] },
    subject: content.subject,
    text: content.text,
    html: content.html,
    // A text/calendar alternative, which clients act on, and an .ics file.
    icalEvent: calendar && { method: calendar.method, content: calendar.text, filename: 'appointment.ics' },
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      'Content-Language': content.language,
      'X-Request-Id': mail.requestId,
    },
  };
}

/** The same mail has the same id at every attempt, so that a duplicate is recognised. */
function messageIdOf(mail: Pick<MailRow, 'eventId' | 'aboutId' | 'template'>, senderAddress: string): string {
  const identity = createHash('sha256')
    .update(`${mail.eventId} ${mail.aboutId} ${mail.template}`)
    .digest('hex')
    .slice(0, 40);
  return `<${identity}@${asciiDomainOf(senderAddress)}>`;
}
