import { createTransport } from 'nodemailer';

/**
 * Connects to a mail server, and logs in if the URL contains a user; rejects if one of these fails. Sends nothing.
 * A separate entry point, because importing it also loads nodemailer, which most services do not need.
 */
export async function verifyMailServer(url: string, timeoutMs: number, options: { requireTLS?: boolean } = {}): Promise<void> {
  const transport = createTransport({ url, connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs, ...options });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}
