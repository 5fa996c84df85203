import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The tables of {@link MessagingSchema}; every service with a database runs these before its own migrations. */
export const messagingMigrations: { name: string; migrations: Record<string, Migration> } = {
  name: 'messaging',
  migrations: {
    '2026-11-21-outbox-and-inbox': {
      up: async (db: Kysely<unknown>) => {
        await sql`
          CREATE TABLE outbox (
            id uuid PRIMARY KEY DEFAULT uuidv7(),
            subject text NOT NULL,
            type text NOT NULL,
            payload bytea NOT NULL,
            request_id text NOT NULL,
            traceparent text,
            created_at timestamptz NOT NULL DEFAULT now(),
            sent_at timestamptz
          )`.execute(db);
        await sql`CREATE INDEX outbox_unsent ON outbox (id) WHERE sent_at IS NULL`.execute(db);
        await sql`CREATE INDEX outbox_sent_at ON outbox (sent_at)`.execute(db);
        await sql`
          CREATE TABLE outbox_position (
            id boolean PRIMARY KEY DEFAULT true CHECK (id),
            stream_created text NOT NULL,
            sequence bigint NOT NULL,
            event_id uuid NOT NULL,
            refill_after uuid,
            refill_until timestamptz,
            CHECK ((refill_after IS NULL) = (refill_until IS NULL))
          )`.execute(db);
        await sql`
          CREATE TABLE inbox (
            consumer text NOT NULL,
            event_id uuid NOT NULL,
            processed_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (consumer, event_id)
          )`.execute(db);
        await sql`CREATE INDEX inbox_processed_at ON inbox (processed_at)`.execute(db);
        await sql`
          CREATE TABLE dead_letter (
            consumer text NOT NULL,
            event_id uuid NOT NULL,
            subject text NOT NULL,
            payload bytea NOT NULL,
            request_id text NOT NULL,
            error text NOT NULL,
            attempts integer NOT NULL,
            failed_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (consumer, event_id)
          )`.execute(db);
      },
    },
    '2026-11-24-audit-entries': {
      up: async (db: Kysely<unknown>) => {
        await sql`
          CREATE TABLE audit_entry (
            id uuid PRIMARY KEY DEFAULT uuidv7(),
            recorded_at timestamptz NOT NULL DEFAULT now(),
            operator text NOT NULL,
            action text NOT NULL,
            target text NOT NULL,
            request_id text NOT NULL
          )`.execute(db);
        await sql`CREATE INDEX audit_entry_recorded_at ON audit_entry (recorded_at)`.execute(db);
      },
    },
    '2026-12-26-event-failures': {
      up: async (db: Kysely<unknown>) => {
        await sql`
          CREATE TABLE event_failure (
            consumer text NOT NULL,
            event_id uuid NOT NULL,
            failures integer NOT NULL,
            failed_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (consumer, event_id)
          )`.execute(db);
        await sql`CREATE INDEX event_failure_failed_at ON event_failure (failed_at)`.execute(db);
      },
    },
    // The relay encodes the data. Rows from before have the message: they are sent, and published again after a loss, for 7 days.
    '0001-event-data': {
      up: async (db: Kysely<unknown>) => {
        await sql`
          ALTER TABLE outbox
            ADD COLUMN data json,
            ALTER COLUMN type DROP NOT NULL,
            ALTER COLUMN payload DROP NOT NULL,
            ADD CONSTRAINT outbox_data_or_message CHECK (num_nonnulls(data, payload) = 1) NOT VALID`.execute(db);
      },
    },
    '0002-event-data-checked': {
      up: async (db: Kysely<unknown>) => {
        await sql`ALTER TABLE outbox VALIDATE CONSTRAINT outbox_data_or_message`.execute(db);
      },
    },
  },
};
