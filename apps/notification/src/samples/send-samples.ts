import { withTlsRule } from '@scheduling/runtime';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createTransport } from 'nodemailer';
import { toMessage } from '../mail/send-mail.ts';
import { sampleMails } from './sample-mails.ts';
import { renderSamplePage } from './sample-page.ts';

/**
 * Sends every mail in every language with made-up data, for those who design them, and writes a page with them. Returns
 * how many there are.
 */
export async function sendSamples(options: { smtpUrl: string; recipient: string; page: string }): Promise<number> {
  const transport = createTransport({ url: withTlsRule(options.smtpUrl), pool: true, maxConnections: 1 });
  const samples = sampleMails(options.recipient);
  if (options.page !== '') await writeFile(options.page, renderSamplePage(samples));
  try {
    for (const { template, content } of samples) {
      await transport.sendMail(
        toMessage({ eventId: randomUUID(), aboutId: randomUUID(), template, requestId: 'sample' }, content),
      );
    }
  } finally {
    transport.close();
  }
  return samples.length;
}
