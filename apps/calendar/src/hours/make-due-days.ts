import { callFunction, type Database, isUnavailable } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { LRUCache } from 'lru-cache';
import { setTimeout as delay } from 'node:timers/promises';
import type { CalendarSchema, Hours } from '../db/schema.ts';
import type { HoursMetrics } from './hours-metrics.ts';
import { type Plan, planDays } from './plan-timeslots.ts';
import { maxAtOnce, tryToReplace } from './replace-hours.ts';

export interface MakingDependencies {
  database: Database<CalendarSchema>;
  metrics: HoursMetrics;
  logger: Logger;
  /** Hours whose timeslots could not be made lately. */
  failures: LRUCache<string, true>;
}

/** As many are made by a statement. */
const resourcesPerTurn = 20;
/** After a turn that took longer, the database has as much time for others. */
const heavyMs = 100;

interface HoursId {
  crmId: string;
  providerId: string;
  resourceReference: string;
}

/** Hours of which there is more to make. */
interface DueHours extends HoursId {
  content: Hours;
  revision: string;
  /** In which the timeslots have been made; another one than that of the provider: they are to be made anew. */
  madeTimeZone: string;
  madeFrom: string;
  madeUntil: string;
  timeZone: string;
  /** Of the provider. */
  version: number;
  /** By the CRM's clock. */
  present: Date;
  aheadMs: number;
}

/**
 * Takes a turn for each CRM with opening hours of which days have come within reach: makes their timeslots. Hours whose
 * timeslots cannot be made are left alone for a minute, and do not stop the others; this rejects only if the database
 * does not answer. Any number of replicas can do this at the same time. Returns whether there is more to make at once.
 */
export async function makeDueDays(dependencies: MakingDependencies, signal: AbortSignal): Promise<boolean> {
  const waiting = Map.groupBy(await findDue(dependencies), ({ crmId }) => crmId);
  let isBehind = false;
  for (const [crmId, ids] of waiting) {
    if (signal.aborted) return false;
    const beganMs = performance.now();
    const isDone = await takeTurn(dependencies, crmId, ids.slice(0, resourcesPerTurn));
    if (!isDone || ids.length > resourcesPerTurn) isBehind = true;
    const tookMs = performance.now() - beganMs;
    if (tookMs > heavyMs) await delay(tookMs, undefined, { signal });
  }
  return isBehind;
}

async function findDue({ database, failures }: MakingDependencies): Promise<HoursId[]> {
  const { rows } = await sql<HoursId>`
    SELECT crm_id, provider_id, resource_reference FROM resource_hours WHERE due_at <= (SELECT scheduling_now()) ORDER BY due_at`.execute(
    database.kysely,
  );
  return rows.filter((id) => !failures.has(keyOf(id)));
}

function keyOf({ crmId, providerId, resourceReference }: HoursId): string {
  return JSON.stringify([crmId, providerId, resourceReference]);
}

/** Returns whether nothing is left of these to make at once. */
async function takeTurn(dependencies: MakingDependencies, crmId: string, ids: HoursId[]): Promise<boolean> {
  const plans: PlannedHours[] = [];
  let isDone = true;
  const due = await readDue(dependencies.database, crmId, ids);
  // At least one is made anew, if any has to be.
  const endsMs = performance.now() + heavyMs;
  for (const hours of due) {
    await attempt(dependencies, [hours], async () => {
      if (hours.madeTimeZone === hours.timeZone) plans.push(planOf(hours, due.length));
      else if (performance.now() < endsMs) await makeAnew(dependencies, hours);
      else isDone = false;
    });
  }
  const isMade = await attempt(dependencies, plans, () => makeDays(dependencies, crmId, plans));
  // One of them may be the reason.
  if (!isMade)
    for (const plan of plans) await attempt(dependencies, [plan], () => makeDays(dependencies, crmId, [plan]));
  return isDone && plans.every(({ isComplete }) => isComplete);
}

/** Whether it succeeded. Rejects only if the database does not answer. */
async function attempt(
  { database, logger, failures }: MakingDependencies,
  ids: HoursId[],
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (isUnavailable(error)) await database.ping();
    const hours = ids.map(({ crmId, providerId, resourceReference }) => ({ crmId, providerId, resourceReference }));
    logger.warn({ err: error, hours }, 'timeslots cannot be made from opening hours');
    if (ids.length === 1) failures.set(keyOf(ids[0]!), true);
    return false;
  }
}

async function readDue({ kysely }: Database<CalendarSchema>, crmId: string, ids: HoursId[]): Promise<DueHours[]> {
  const [providerIds, resources] = [ids.map(({ providerId }) => providerId), ids.map((id) => id.resourceReference)];
  const { rows } = await sql<DueHours>`
    SELECT hours.crm_id, hours.provider_id, hours.resource_reference, content, revision, hours.time_zone AS made_time_zone, made_from, made_until,
           provider.time_zone, provider.version, present, coalesce((SELECT ahead_ms FROM sandbox_clock WHERE crm_id = ${crmId}), 0) AS ahead_ms
      FROM (SELECT scheduling_now(${crmId}) AS present, scheduling_now() AS real_present OFFSET 0) AS times
     CROSS JOIN unnest(${providerIds}::uuid[], ${resources}::text[]) AS due (provider_id, resource_reference)
     CROSS JOIN LATERAL (
       SELECT * FROM resource_hours
        WHERE crm_id = ${crmId} AND provider_id = due.provider_id AND resource_reference = due.resource_reference AND due_at <= real_present OFFSET 0) AS hours
     CROSS JOIN LATERAL (SELECT * FROM provider WHERE crm_id = ${crmId} AND id = due.provider_id OFFSET 0) AS provider`.execute(
    kysely,
  );
  return rows;
}

type PlannedHours = HoursId & Plan & { revision: string };

function planOf(hours: DueHours, resources: number): PlannedHours {
  const { crmId, providerId, resourceReference, revision, content } = hours;
  const plan = planDays({ ...hours, hours: content }, hours, maxAtOnce / resources);
  return { crmId, providerId, resourceReference, revision, ...plan };
}

/** See make-days.sql. */
async function makeDays(
  { database, metrics }: MakingDependencies,
  crmId: string,
  hours: PlannedHours[],
): Promise<void> {
  if (hours.length === 0) return;
  const request = { crmId, hours };
  metrics.made(await callFunction<number>(database.kysely, { name: 'make_days', request, locks: crmId }));
}

/** In the present zone of the provider, and at the present time. */
async function makeAnew({ database, metrics }: MakingDependencies, hours: DueHours): Promise<void> {
  const { crmId, providerId: id, timeZone, version, resourceReference, content, revision } = hours;
  const provider = { crmId, id, timeZone, version };
  const replaced = await tryToReplace(database, { provider, resources: [resourceReference], hours: content, revision });
  if (typeof replaced !== 'string') metrics.made(replaced.made);
}
