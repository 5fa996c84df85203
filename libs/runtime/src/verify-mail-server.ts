import { createTransport } from 'nodemailer';

/**
 * Connects to a mail server, and logs in if the URL has a user; rejects if one of them fails. Nothing is sent.
 * It has an entry point of its own: whoever imports it brings nodemailer, which most services do without.
 */
export async function verifyMailServer(url: string, timeoutMs: number, options: { requireTLS?: boolean } = {}): Promise<void> {
  const transport = createTransport({ url, connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs, ...options });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}
