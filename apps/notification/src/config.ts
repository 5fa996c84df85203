import { readEnvironment, readPageUrl } from '@scheduling/runtime';
import { readServiceSettings } from '@scheduling/service';

export type Config = ReturnType<typeof readConfig>;

/** The only reader of the environment. */
export function readConfig(environment: NodeJS.ProcessEnv) {
  return readEnvironment(environment, (read) => {
    const publicUrl = read.url('PUBLIC_URL', ['http:', 'https:']);
    return {
      ...readServiceSettings(read),
      identityAddress: read.text('IDENTITY_ADDRESS'),
      calendarAddress: read.text('CALENDAR_ADDRESS'),
      customerAddress: read.text('CUSTOMER_ADDRESS'),
      smtpUrl: read.url('SMTP_URL', ['smtp:', 'smtps:']),
      /** A server that only shows mails to developers, for those of sandboxes; undefined: they are only kept. */
      sandboxSmtpUrl: read.url('SANDBOX_SMTP_URL', ['smtp:', 'smtps:'], '') || undefined,
      /** Connections to the mail server, and thus mails sent concurrently. */
      smtpConnections: read.integer('SMTP_CONNECTIONS', { min: 1, max: 100 }, 10),
      /** Mails of one CRM to one address, and in total, in an hour; 0: any number. */
      mailQuotas: {
        toOneRecipient: read.integer('MAILS_PER_HOUR_AND_RECIPIENT', { min: 0, max: 100_000 }, 20),
        inTotal: read.integer('MAILS_PER_HOUR_AND_CRM', { min: 0, max: 100_000 }, 3_000),
      },
      /** Mails to one address of a provider about its bookings in an hour, before the rest becomes one list; 0: any number. */
      providerMailQuota: read.integer('PROVIDER_MAILS_PER_HOUR', { min: 0, max: 100_000 }, 60),
      /** The sender for CRMs without their own address. */
      senderAddress: read.text('SENDER_ADDRESS', 'no-reply@scheduling.example'),
      /** The public URL of the gateway: the base of the links to verify addresses. */
      publicUrl,
      /** The public URL of the pages for persons, without a trailing slash: the base of the links to their bookings. */
      pageUrl: readPageUrl(read, () => publicUrl),
    };
  });
}

/** For the command that sends a sample of every mail. */
export function readSamplesConfig(environment: NodeJS.ProcessEnv) {
  return readEnvironment(environment, (read) => ({
    smtpUrl: read.url('SMTP_URL', ['smtp:', 'smtps:']),
    recipient: read.text('SAMPLES_RECIPIENT', 'anna@example.com'),
    /** The file to write them to, too, each beside the one before; empty: none. */
    page: read.text('SAMPLES_PAGE', ''),
  }));
}
