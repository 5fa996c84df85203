import type { EnvironmentVariable } from '@scheduling/runtime';
import { readServiceConfiguration, services } from './service-configuration.ts';

/** What each variable is for. What it may be and its default are read from the configurations themselves. */
const meanings: Record<string, string> = {
  ANONYMISE_AFTER_DAYS: 'how long after the end of its appointment a participation is anonymised; 0: never',
  ARCHIVE_AFTER_DAYS: 'how long after its end an appointment is archived',
  CALENDAR_ADDRESS: 'gRPC address of calendar, `host:port`, or `dns:///host:port` to spread calls over all replicas',
  CUSTOMER_ADDRESS: 'the same of customer',
  DATABASE_URL: "the service's own Postgres database; a secret",
  GRPC_PORT: 'where it answers gRPC; 0 takes a free port',
  GRPC_TLS_CA_FILE: 'the authorities that sign the certificates of all services, in PEM',
  GRPC_TLS_CERT_FILE: 'with the other two `GRPC_TLS_` variables, calls between services are mutual TLS: a file with the certificate of this service, in PEM',
  GRPC_TLS_KEY_FILE: 'the key of that certificate, in PEM',
  HTTP_PORT: 'where it answers clients; 0 takes a free port',
  IDENTITY_ADDRESS: 'the same of identity',
  LISTEN_HOST: 'the address on which it listens',
  LOG_LEVEL: 'lines below this level are not written',
  METRICS_PORT: '`/livez`, `/readyz` and `/metrics`; 0 takes a free port',
  NATS_STREAM_REPLICAS: 'on how many NATS servers the stream is kept; 3 in a cluster of servers. A stream with fewer gets them, one with more stays as it is',
  NATS_URL: 'where events go and come from',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'a collector of traces (OTLP over HTTP); absent: no traces are made',
  PUBLIC_URL: 'where clients reach the gateway: in the API document, in `Link` headers and in mails',
  RESERVATION_SWEEPER: '`off`: reservations end on time all the same, only their rows stay for a while',
  SENDER_ADDRESS: 'sends the mails of CRMs that have no address of their own',
  SMTP_CONNECTIONS: 'mails that one replica sends at the same time',
  SMTP_URL: 'the mail server, `smtp://user:password@host:587` (STARTTLS when offered) or `smtps://…:465`; a secret',
};

interface Row extends EnvironmentVariable {
  services: string[];
}

/** The table of all variables of all services in Markdown, made from every `config.ts`. Throws when one has no meaning here, or is not read. */
export async function configurationTable(): Promise<string> {
  const rows = await collectRows();
  const unread = Object.keys(meanings).filter((name) => !rows.some((row) => row.name === name));
  if (unread.length > 0) throw new Error(`no service reads ${unread.join(', ')}`);
  const lines = rows.map((row) => `| \`${row.name}\` | ${presentServices(row)} | ${presentDefault(row)} | ${row.allowed ?? 'a text'} | ${meaningOf(row)} |`);
  return ['| Variable | Services | Default | Allowed | Meaning |', '|---|---|---|---|---|', ...lines].join('\n');
}

/** One row for each variable; one that differs between services has several. */
async function collectRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const service of services) {
    for (const variable of (await readServiceConfiguration(service)).described) {
      const same = rows.find(({ name, allowed, fallback }) => name === variable.name && allowed === variable.allowed && fallback === variable.fallback);
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

function meaningOf({ name }: Row): string {
  const meaning = meanings[name];
  if (meaning === undefined) throw new Error(`${name} has no meaning in deploy/test/configuration-table.ts`);
  return meaning;
}
