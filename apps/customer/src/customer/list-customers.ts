import { collectFieldErrors } from '@scheduling/errors';
import { folded, isAddress } from '@scheduling/postgres';
import { createCursor, idField, lowestId, readCursor } from '@scheduling/runtime';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';

export interface CustomersQuery {
  crmId: string;
  providerReference: string;
  /** Only customers with this address, in any of its forms. */
  email?: string | undefined;
  /** Only customers whose name, e-mail, mobile or reference contains this text, in any case. */
  text?: string | undefined;
  /** Only customers that have all of these pairs. */
  metadata?: Record<string, string> | null | undefined;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface CustomersPart {
  customers: CustomerRow[];
  /** Set in the last part of a page if there is another page. */
  nextCursor?: string | undefined;
}

const customerCursor = createCursor<Pick<CustomerRow, 'id'>>({ id: idField() });

/** The most customers that a statement reads, so also the most in a part. */
const maxCustomers = 250;
/** Customers with the same metadata are read by their ids if they are no more than these. */
const maxWithMetadata = 2_000;

/**
 * A provider's customers in the order of their ids, which is that of their creation, in parts of bounded size, each
 * read once the previous one has been consumed. An index finds those with an address, and those with metadata unless they
 * are many. No index helps with a text: all customers of the provider are read, a bounded number at a time, so a part may
 * be empty. Rejects with `customer.invalid` or `provider.not_found`.
 */
export async function* listCustomers(
  dependencies: CustomerDependencies,
  query: CustomersQuery,
  signal: AbortSignal,
): AsyncGenerator<CustomersPart> {
  const filter = await readQuery(dependencies, query);
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let { after } = filter;
  let sent = after;
  while (!signal.aborted) {
    // One more than what is left shows whether another page follows.
    const count = filter.matches === undefined ? Math.min(maxCustomers, left + 1) : maxCustomers;
    const { found, next } = await readCustomers(dependencies.database.kysely, { ...filter, after, count });
    const customers = found.slice(0, left);
    left -= customers.length;
    sent = customers.at(-1)?.id ?? sent;
    const isPageFull = found.length > customers.length;
    yield { customers, nextCursor: isPageFull ? customerCursor.encode({ id: sent }) : undefined };
    if (isPageFull || next === undefined) return;
    after = next;
  }
}

interface CustomersFilter {
  crmId: string;
  providerId: string;
  /** Undefined: any. */
  email?: string | undefined;
  /** Undefined: any. */
  ids?: string[] | undefined;
  /** Undefined if all do. */
  matches: RawBuilder<boolean> | undefined;
  after: string;
}

async function readQuery(dependencies: CustomerDependencies, query: CustomersQuery): Promise<CustomersFilter> {
  const errors = collectFieldErrors();
  const { id: after } = readCursor(customerCursor, query.cursor, errors) ?? { id: lowestId };
  errors.throwIfAny('customer.invalid');
  const { crmId, email, text, metadata } = query;
  const providerId = await findProviderId(dependencies, query);
  const conditions = [...(text === undefined ? [] : [contains(text)]), ...(metadata ? [hasMetadata(metadata)] : [])];
  return {
    crmId,
    providerId,
    email,
    ids: metadata ? await findIdsWithMetadata(dependencies, { providerId, metadata }) : undefined,
    matches: conditions.length === 0 ? undefined : sql<boolean>`(${sql.join(conditions, sql` AND `)})`,
    after,
  };
}

/**
 * A remembered provider may have been deleted, and another one may have its reference since. One that has customers was
 * not, so identity is asked only if there are none.
 */
async function findProviderId(
  { database: { kysely }, providers }: CustomerDependencies,
  query: CustomersQuery,
): Promise<string> {
  const providerId = await providers.rememberedId(query);
  const customer = await kysely
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', query.crmId)
    .where('providerId', '=', providerId)
    .limit(1)
    .executeTakeFirst();
  return customer === undefined ? providers.requireId(query) : providerId;
}

function hasMetadata(metadata: Record<string, string>): RawBuilder<boolean> {
  return sql<boolean>`coalesce(metadata @> ${JSON.stringify(metadata)}::jsonb, false)`;
}

/** Undefined if they are many: then reading all customers in their order finds some soon. */
async function findIdsWithMetadata(
  { database }: CustomerDependencies,
  scope: { providerId: string; metadata: Record<string, string> },
): Promise<string[] | undefined> {
  const { rows } = await selectIdsWithMetadata(scope).execute(database.kysely);
  return rows.length > maxWithMetadata ? undefined : rows.map(({ id }) => id);
}

/** One more than are read by their ids. */
export function selectIdsWithMetadata({
  providerId,
  metadata,
}: {
  providerId: string;
  metadata: Record<string, string>;
}): RawBuilder<{ id: string }> {
  return sql<{ id: string }>`
    SELECT id FROM customer
     WHERE metadata IS NOT NULL AND jsonb_set('{}', ARRAY[provider_id::text], metadata) @> ${JSON.stringify({ [providerId]: metadata })}::jsonb
     LIMIT ${maxWithMetadata + 1}`;
}

/** A text that is searched for has no line breaks, so it is found within one field only. */
function contains(text: string): RawBuilder<boolean> {
  return sql<boolean>`(strpos(${folded(sql`concat_ws(chr(10), user_name, email, mobile, reference)`)}, ${folded(sql`${text}::text`)}) > 0)`;
}

interface ReadCustomer extends CustomerRow {
  matches: boolean;
  place: number;
}

/** Reads `count` customers. Answers those that match, and where to continue; undefined if there are no more. */
async function readCustomers(
  db: Kysely<CustomerSchema>,
  part: CustomersFilter & { count: number },
): Promise<{ found: CustomerRow[]; next: string | undefined }> {
  const { rows } = await selectCustomers(part).execute(db);
  const found = rows.filter((row) => row.matches).map(({ matches: _matches, place: _place, ...customer }) => customer);
  return { found, next: rows.find(({ place }) => place === part.count)?.id };
}

/** Of the next `count` customers, with the address if there is one, those that match, and the last one. */
export function selectCustomers({
  crmId,
  providerId,
  email,
  ids,
  matches = sql<boolean>`true`,
  after,
  count,
}: CustomersFilter & { count: number }): RawBuilder<ReadCustomer> {
  const hasEmail = email === undefined ? sql`true` : sql`email IS NOT NULL AND ${isAddress(sql`email`, email)}`;
  const isOneOf = ids === undefined ? sql`true` : sql`id = ANY (${ids}::uuid[])`;
  return sql<ReadCustomer>`
    SELECT * FROM (
      SELECT part.*, row_number() OVER (ORDER BY id)::integer AS place
        FROM (
          SELECT crm_id, id, provider_id, provider_reference, reference, user_name, email, mobile, note, language, metadata, version, ${matches} AS matches
            FROM customer
           WHERE crm_id = ${crmId} AND provider_id = ${providerId} AND id > ${after} AND provisional_until IS NULL AND ${hasEmail} AND ${isOneOf}
           ORDER BY id
           LIMIT ${count}
        ) AS part
    ) AS numbered
     WHERE matches OR place = ${count}
     ORDER BY id`;
}
