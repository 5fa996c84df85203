import type { EnvironmentVariable } from '@scheduling/runtime';
import { readServiceConfiguration, services } from './service-configuration.ts';

/** The meaning of each variable. Its default and its allowed values come from the configurations. */
const meanings: Record<string, string> = {
  ADMIN_LISTEN_HOST:
    'the address to listen on for operators; by default it can be reached only from this machine or pod',
  ADMIN_PORT: 'gRPC port for operators, which the admin command calls; 0 picks a free one',
  ANONYMISE_AFTER_DAYS:
    'days from the end of the appointment until its participations are anonymised, unless their CRM has a shorter period of its own; 0 = only then',
  ARCHIVE_AFTER_DAYS: 'days from the end of an appointment until it is archived',
  CALENDAR_ADDRESS: 'gRPC address of calendar, `host:port`, or `dns:///host:port` to balance calls across all replicas',
  CONTACT_EMAIL:
    'e-mail address of the operator for integrators, shown in the API document; if not set, that names `PUBLIC_URL`',
  CUSTOMER_ADDRESS: 'the same for customer',
  DATABASE_URL:
    "the service's own Postgres database; a secret. Its host leads to the primary ([Postgres with a standby](#postgres-with-a-standby)); parameters are only those of TLS, and `host` for the folder of a Unix socket",
  GRPC_PORT: 'gRPC port for the other services; 0 picks a free one',
  GRPC_TLS_CA_FILE: 'PEM file with the certificate authorities of all services',
  GRPC_TLS_CERT_FILE:
    'PEM file with the certificate of this service, for its name; setting all three `GRPC_TLS_` variables enables mutual TLS between the services',
  GRPC_TLS_KEY_FILE: 'PEM file with the private key of that certificate',
  HTTP_PORT: 'port for clients; 0 picks a free one',
  IDENTITY_ADDRESS: 'the same for identity',
  LINK_KEYS:
    'the keys that sign the links in mails (HMAC-SHA256): the first one signs, all of them verify; a secret. [How to rotate them](#keys-and-certificates)',
  LISTEN_HOST:
    'the address to listen on; `::` listens on all addresses, of IPv4 and, where the machine has it, of IPv6',
  LOG_LEVEL: 'the lowest level that is logged',
  MAILS_PER_HOUR_AND_CRM:
    'mails of one CRM in an hour; 0 = any number. The surplus waits for later hours, except cancellations and notices of deletion',
  MAILS_PER_HOUR_AND_RECIPIENT: 'the same for its mails to one address',
  METRICS_PORT: 'port of `/livez`, `/readyz` and `/metrics`; 0 picks a free one',
  NATS_CREDENTIALS_FILE:
    'file with the credentials of the NATS user (`.creds`) or the seed of its NKey, instead of a password in `NATS_URL`',
  NATS_STREAM_REPLICAS:
    'number of NATS servers that store the stream; 3 in a cluster. Raised on an existing stream (by identity), never lowered',
  NATS_TLS_CA_FILE:
    'PEM file with the certificate authorities of the NATS servers; if not set, those of Node. Any of the `NATS_TLS_` variables requires TLS, as `tls://` does',
  NATS_TLS_CERT_FILE:
    'PEM file with the certificate of this process for NATS servers that demand one, together with its key',
  NATS_TLS_KEY_FILE: 'PEM file with the private key of that certificate',
  NATS_URL:
    "the NATS server for events, with the service's own user: `nats://calendar:password@host:4222`, or a token: `nats://token@host:4222`; `tls://` requires TLS; several servers of a cluster are separated by commas: `nats://calendar:password@one:4222,two:4222`; a secret",
  NOTIFICATION_ADDRESS: 'the same for notification',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'trace collector (OTLP over HTTP); if not set, there are no traces',
  OTEL_TRACES_SAMPLER:
    'which traces are recorded: all, a fraction (`OTEL_TRACES_SAMPLER_ARG`) or none. With `parentbased_`, the decision of a caller that sends a `traceparent` applies. The same for all services',
  OTEL_TRACES_SAMPLER_ARG: 'the fraction of traces that `parentbased_traceidratio` records, such as 0.1',
  TRUSTED_PROXIES:
    'addresses and networks of the proxies in front of the service, separated by commas: their `X-Forwarded-For` names the client',
  PAGE_URL:
    'public address of the pages on which persons book and change their bookings, used in the links to them; if not set, that of the gateway (`PUBLIC_URL`)',
  PROVIDER_MAILS_PER_HOUR:
    'mails to one address of a provider about its bookings in an hour, before the rest is told in one list; 0 = any number',
  PUBLIC_URL:
    'public address of the gateway, used in the API document, in `Link` headers and in mails; page needs it only without `PAGE_URL`',
  RESERVATION_SWEEPER: '`off`: reservations still expire on time, but their rows stay for a while',
  SANDBOX_SMTP_URL:
    'a server that only shows mails to developers, to which the mails of sandboxes go in addition to being kept; if not set, they go nowhere. Never one that delivers mails',
  SENDER_ADDRESS: 'sender of the mails of CRMs that have no address of their own',
  SMTP_CONNECTIONS: 'number of mails that one replica sends concurrently',
  SMTP_URL:
    'the mail server, `smtp://user:password@host:587` or `smtps://…:465`; a secret. Nothing is sent without TLS, except to this machine or with `?requireTLS=false`',
  WEBHOOK_ADDRESS: 'the same for webhook',
  WEBHOOK_ALLOW_PRIVATE:
    '`true`: webhooks may have `http` URLs, and may point to this machine and to internal addresses; for development, never in production',
  WEBHOOK_CONNECTIONS:
    'number of webhooks to which one replica delivers concurrently; those of one CRM, or with the same host, get half of it at most',
  WEBHOOK_SECRET_KEYS:
    'the keys that seal the secrets of webhooks in the database (AES-256-GCM): the first one seals, all of them open; a secret. [How to rotate them](#keys-and-certificates)',
};

interface Row extends EnvironmentVariable {
  services: string[];
}

/**
 * The table of all variables of all services in Markdown, generated from every `config.ts`. Throws if one has no
 * meaning here, or is not read.
 */
export async function configurationTable(): Promise<string> {
  const rows = await collectRows();
  const unread = Object.keys(meanings).filter((name) => !rows.some((row) => row.name === name));
  if (unread.length > 0) throw new Error(`no service reads ${unread.join(', ')}`);
  const lines = rows.map(
    (row) =>
      `| \`${row.name}\` | ${presentServices(row)} | ${presentDefault(row)} | ${presentAllowed(row)} | ${meaningOf(row)} |`,
  );
  return ['| Variable | Services | Default | Allowed | Meaning |', '|---|---|---|---|---|', ...lines].join('\n');
}

/** One row per variable, or several if services differ. */
async function collectRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const service of services) {
    for (const variable of (await readServiceConfiguration(service)).described) {
      const same = rows.find(
        ({ name, allowed, fallback }) =>
          name === variable.name && allowed === variable.allowed && fallback === variable.fallback,
      );
      if (same) same.services.push(service);
      else rows.push({ ...variable, services: [service] });
    }
  }
  return rows.toSorted((one, other) => one.name.localeCompare(other.name));
}

function presentServices(row: Row): string {
  return row.services.length === services.length ? 'all' : row.services.join(', ');
}

function presentDefault({ fallback }: Row): string {
  if (fallback === undefined) return 'required';
  return fallback === '' ? '' : `\`${fallback}\``;
}

/** Markdown takes `<id>` for HTML. */
function presentAllowed({ allowed = 'a string' }: Row): string {
  return allowed.replaceAll('<', '\\<');
}

function meaningOf({ name }: Row): string {
  const meaning = meanings[name];
  if (meaning === undefined) throw new Error(`${name} has no meaning in deploy/test/configuration-table.ts`);
  return meaning;
}
