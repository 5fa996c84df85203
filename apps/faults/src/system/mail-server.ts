import { startTestSmtp, type TestSmtp } from '@scheduling/testing/smtp';

/** What the mail server does with mails. */
export type MailServerMood =
  | 'good'
  /** Refuses every recipient for now. */
  | 'refusing'
  /** Takes seconds to accept a mail. */
  | 'slow'
  /** Accepts a mail, and closes the connection instead of saying so. */
  | 'cutting';

/** A real SMTP server, which keeps all that it accepts. */
export interface MailServer extends TestSmtp {
  mood: MailServerMood;
}

const slowMs = 3_000;

export async function startMailServer(): Promise<MailServer> {
  const smtp = await startTestSmtp();
  const server: MailServer = Object.assign(smtp, { mood: 'good' as const });
  smtp.trouble = () => {
    switch (server.mood) {
      case 'good':
        return undefined;
      case 'refusing':
        return { at: 'rcpt', code: 451 };
      case 'slow':
        return { at: 'data', hangMs: slowMs };
      case 'cutting':
        return { at: 'data', dies: true };
    }
  };
  return server;
}
