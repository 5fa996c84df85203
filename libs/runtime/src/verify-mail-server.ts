import { createTransport } from 'nodemailer';
import { requiresTls, withTlsRule } from './smtp-tls.ts';

/**
 * Connects to a mail server, and logs in if the URL contains a user; rejects if one of these fails. Sends nothing.
 * A separate entry point, because importing it also loads nodemailer, which most services do not need.
 */
export async function verifyMailServer(url: string, timeoutMs: number, requireTls = requiresTls(url)): Promise<void> {
  const transport = createTransport({
    url: withTlsRule(url, requireTls),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}
