import type { Customer } from '@scheduling/contracts/customer/v1';
import { DomainError, type DomainErrorOptions, type ErrorCode } from '@scheduling/errors';
import { callOnce, type FunctionCall, isUniqueViolation } from '@scheduling/postgres';
import type { ProviderKey } from '@scheduling/service';
import { fetchIfKnown, type NamedCustomer } from '../customer/customer-copy.ts';
import { Preparation, preparedContent } from '../customer/preparation.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, withRememberedProvider } from '../provider/remembered-providers.ts';
import type { BookingChange } from './booking-metrics.ts';
import { reclaimReservations } from './reclaim-reservations.ts';

/** What a function answers that books; see answers.sql. */
type Answer<Content> = { reclaimed?: number } & (Settled<Content> | Obstacle<Retry | 'provider'>);

/** The work is done. */
export type Settled<Content> = { id: string; created: boolean } & Partial<BookingChange> & Content;

/** The request is rejected with the error, or another attempt can succeed. */
interface Obstacle<Reason> {
  id?: undefined;
  retry?: Reason | undefined;
  error?: Rejection | undefined;
}

type Retry = 'customer' | 'reference' | 'stale';

type Rejection = DomainErrorOptions & { code: ErrorCode };

/** A request that books, or that changes a booking. */
export interface BookingRequest<Content> {
  provider: ProviderKey;
  /** For whom it is, if that matters. */
  customer?: NamedCustomer | undefined;
  /** Of participations that it creates. */
  references?: string[] | undefined;
  /** The function, and its request without `crmId`, `providerId`, `providerVersion` and `prepared`. */
  call: (provider: ProviderRow) => Promise<BookingCall> | BookingCall;
  /** For a request that can have an `Idempotency-Key`: the content of the first answer, as it is now; undefined: it is gone. */
  read?: (id: string) => Promise<Content | undefined>;
  /** If it is gone. */
  notFound?: ErrorCode;
  /** If others do not stop changing what it reads. */
  busy: ErrorCode;
}

export interface BookingCall extends Omit<FunctionCall, 'request'> {
  request: object;
}

/**
 * One each to read the provider again, to provide the customer and to remove expired reservations, plus a few for what
 * others change at the same time.
 */
const maxAttempts = 8;

/**
 * Books in one round trip, and with no call of another service if this process remembers the provider and calendar knows
 * the customer. All rules are those of the function (ADR 36): this provides what it misses, and calls it again. A
 * customer whom nobody knows is prepared once the function has found the place free, and exists if the booking is made.
 * Rejects with what the function answers, with `provider.not_found`, with `customer.not_found`, or with `busy`.
 */
export async function settle<Content extends object>(
  dependencies: CalendarDependencies,
  request: BookingRequest<Content>,
): Promise<Settled<Content>> {
  const { crmId } = request.provider;
  await using preparation = new Preparation(dependencies, request.provider);
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const answer = await withRememberedProvider(dependencies, request.provider, (provider) =>
      tryToSettle(dependencies, request, provider, preparation.customer),
    );
    if (answer === 'provider_changed') continue;
    if (answer.id !== undefined) return answer;
    switch (answer.retry) {
      case 'customer':
        if (answer.error === undefined) await preparation.provide(request.customer!);
        else await requireKnown(dependencies, request, answer.error);
        break;
      case 'reference':
        await reclaimReservations(dependencies, crmId, request.references ?? []);
        break;
      case 'stale':
        break;
      case undefined:
        throw new DomainError(answer.error!.code, answer.error);
    }
  }
  throw new DomainError(request.busy);
}

async function tryToSettle<Content extends object>(
  { database, bookings }: CalendarDependencies,
  { provider: { crmId }, call, read, notFound }: BookingRequest<Content>,
  provider: ProviderRow,
  prepared: Customer | undefined,
): Promise<Settled<Content> | Obstacle<Retry> | ProviderChanged> {
  const { request, ...others } = await call(provider);
  const common = { crmId, providerId: provider.id, providerVersion: provider.version };
  const functionCall = {
    ...others,
    request: { ...request, ...common, ...(prepared && { prepared: preparedContent(prepared) }) },
  };
  const replay = async ({ id, created }: { id: string; created: boolean }): Promise<Answer<Content>> => {
    const content = await read!(id);
    if (content === undefined) throw new DomainError(notFound!);
    return { id, created, ...content };
  };
  try {
    const answer = await callOnce<Answer<Content>>(database, functionCall, replay);
    bookings.expired(database.kysely, answer.reclaimed ?? 0);
    if (answer.id !== undefined) {
      bookings.changed(database.kysely, crmId, answer);
      return answer;
    }
    const { retry, error } = answer;
    return retry === 'provider' ? 'provider_changed' : { retry, error };
  } catch (error) {
    // Created concurrently: the next attempt finds it, or finds it gone.
    if (isUniqueViolation(error, 'participation_reference_key')) return { retry: 'stale' };
    throw error;
  }
}

/** Rejects if the customer service does not know the customer either. */
async function requireKnown<Content>(
  dependencies: CalendarDependencies,
  { provider, customer }: BookingRequest<Content>,
  error: Rejection,
): Promise<void> {
  const id = await fetchIfKnown(dependencies, provider, customer!.customerReference);
  if (id === undefined) throw new DomainError(error.code, error);
}
