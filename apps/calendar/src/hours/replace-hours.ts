import { DomainError } from '@scheduling/errors';
import { callFunction, type Database } from '@scheduling/postgres';
import type { ProviderKey } from '@scheduling/service';
import type { Conflicts } from '../appointment/conflicts.ts';
import { periodOf } from '../daily-list/local-day.ts';
import { readClock } from '../db/clock.ts';
import type { CalendarSchema, Hours } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, withRememberedProvider } from '../provider/remembered-providers.ts';
import { expandHours, type Opening } from './expand-hours.ts';
import { type HoursAt, type Plan, planDays, planTimeslots, todayOf } from './plan-timeslots.ts';

export interface Replaced {
  conflicts: Conflicts;
  /** YYYY-MM-DD. */
  madeUntil: string;
  /** How many timeslots. */
  made: number;
}

/**
 * As many timeslots are made at once; the rest follows within seconds. So the work of a request is bounded, and the
 * hours of a few resources for a year are complete with the answer.
 */
export const maxAtOnce = 5_000;
/**
 * More are not removed by one request, nor compared with what there should be, if it sets the hours of several
 * resources. A single one cannot have as many.
 */
const maxTogether = 40_000;
/** The most that timeslots are made ahead, and so far appointments are compared with the hours. */
const maxDays = 400;
/** One to read the provider again, and a few for midnight and for a sandbox whose clock is being set. */
const maxAttempts = 4;

/** Hours without a window: of a resource that has none any more. */
const noHours: Hours = { weekly: [], exceptions: [], validFrom: null, validUntil: null, aheadDays: 1 };

/**
 * Sets the hours of some resources of a provider, or removes them (undefined), with their timeslots: see
 * replace-hours.sql. Repeated, it changes nothing. Rejects with `provider.not_found`, with `hours.invalid` if the
 * resources have too many timeslots together, or with `service.unavailable` if what it depends on does not stop
 * changing.
 */
export async function replaceHours(
  dependencies: CalendarDependencies,
  key: ProviderKey,
  resources: string[],
  hours: Hours | undefined,
): Promise<Replaced> {
  const { database, hoursMade } = dependencies;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const replaced = await withRememberedProvider(dependencies, key, async (provider) =>
      tryToReplace(database, { provider, resources, hours }),
    );
    if (replaced === 'provider_changed' || replaced === 'stale') continue;
    hoursMade.made(replaced.made);
    return replaced;
  }
  throw new DomainError('service.unavailable', {
    text: 'The provider, or the clock of the sandbox, is being changed by others.',
  });
}

export interface Replacement {
  provider: Pick<ProviderRow, 'crmId' | 'id' | 'timeZone' | 'version'>;
  resources: string[];
  /** Undefined: none any more. */
  hours: Hours | undefined;
  /** Only if they have it: then they stay what they are, and their timeslots are made anew. */
  revision?: string | undefined;
}

/** `stale`: another day has begun, the clock of the sandbox was set, or the hours have another revision. */
export async function tryToReplace(
  database: Database<CalendarSchema>,
  replacement: Replacement,
): Promise<Replaced | ProviderChanged | 'stale'> {
  const { provider, resources, hours = noHours } = replacement;
  const { crmId, timeZone } = provider;
  const { now: present, aheadMs } = await readClock(database.kysely, crmId);
  const at = { hours, timeZone, present, aheadMs };
  const plan = planDays(at, undefined, maxAtOnce / resources.length);
  const request = requestOf(replacement, at, plan);
  try {
    const { made, ...conflicts } = await database.transaction(async (tx) => {
      const answer = await callFunction<Answer>(tx, { name: 'replace_hours', request, locks: '' });
      // What has been stored until then is rolled back.
      if ('retry' in answer) throw new Retry(answer.retry === 'provider' ? 'provider_changed' : 'stale');
      if ('error' in answer) throw tooManyTogether();
      return answer;
    });
    return { conflicts, made, madeUntil: plan.madeUntil };
  } catch (error) {
    if (error instanceof Retry) return error.reason;
    throw error;
  }
}

/** See replace-hours.sql. */
type Answer = (Conflicts & { made: number }) | { retry: 'provider' | 'stale' } | { error: object };

function tooManyTogether(): DomainError {
  const detail = `have more than ${maxTogether.toLocaleString('en')} timeslots together, before or afterwards: set their hours one by one`;
  return new DomainError('hours.invalid', { errors: [{ pointer: '/resourceReferences', detail }] });
}

class Retry extends Error {
  readonly reason: ProviderChanged | 'stale';

  constructor(reason: ProviderChanged | 'stale') {
    super(reason);
    this.reason = reason;
  }
}

function requestOf({ provider, resources, hours, revision }: Replacement, at: HoursAt, plan: Plan) {
  const today = todayOf(at);
  // An appointment may begin in the last window that counts, and end in the one after it.
  const days = { first: today.subtract({ days: 1 }), last: today.add({ days: maxDays }) };
  const openings = expandHours(at.hours, at.timeZone, days).toArray();
  const lastDate = today.add({ days: at.hours.aheadDays - 1 }).toString();
  const kept = planTimeslots(
    openings.filter(({ date }) => date <= lastDate),
    at.present,
  );
  if (resources.length > 1 && kept.length * resources.length > maxTogether) throw tooManyTogether();
  return {
    crmId: provider.crmId,
    providerId: provider.id,
    providerVersion: provider.version,
    timeZone: provider.timeZone,
    resources,
    content: hours,
    revision,
    ...plan,
    ...periodOf(today, at.timeZone),
    kept: kept.map(({ digest }) => digest),
    aheadMs: at.aheadMs,
    maxTimeslots: resources.length > 1 ? maxTogether : undefined,
    covered: toMultirange(openings),
    until: periodOf(days.last, at.timeZone).dayStart,
  };
}

function toMultirange(openings: Opening[]): string {
  const ranges = openings.map(
    ({ startsAt, endsAt }) => `[${new Date(startsAt).toISOString()},${new Date(endsAt).toISOString()})`,
  );
  return `{${ranges.join(',')}}`;
}
