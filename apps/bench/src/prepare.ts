import type { ListCase, LoadCase } from './cases.ts';
import type { LimitDatabases } from './limit-databases.ts';
import type { Source } from './load.ts';
import { type BenchRequest, requestsOf } from './requests.ts';
import { finishSeeding, seedCalendar, seedCustomers } from './seed.ts';
import { settle, type Target } from './target.ts';
import { createTenant, type Tenant } from './tenant.ts';

/** What all cases use. */
export interface Bench {
  /** This version, and the one that it is compared with. */
  targets: Target[];
  limits: LimitDatabases;
  /** Of each load. */
  seconds: number;
  signal: AbortSignal;
  note: (text: string) => void;
  /** Has this done before the command ends, whether what is measured by then is complete or not. */
  atEnd: (work: () => Promise<void>) => void;
}

export const defaultConnections = 64;

/**
 * Creates and fills the tenants in each stack, and one in the databases of the limit that has as much as all of them.
 */
export async function prepare(
  { targets, limits, note, signal }: Bench,
  each: LoadCase | ListCase,
): Promise<{ tenants: Tenant[][]; limitTenant: Tenant }> {
  note('seeding');
  const tenants: Tenant[][] = [];
  for (const target of targets) {
    tenants.push(await createTenants(target, each));
    await settle(target);
    signal.throwIfAborted();
  }
  const limitTenant = tenants[0]![0]!;
  await seedCalendar(limits.url('calendar'), limitTenant, each.limitSeed ?? each.seed);
  await seedCustomers(limits.url('customer'), limitTenant);
  for (const service of ['calendar', 'customer'] as const) await finishSeeding(limits.url(service));
  note('measuring');
  return { tenants, limitTenant };
}

export async function createTenants(
  { info, superuserUrl }: Target,
  { tenants: count, seed }: Pick<LoadCase, 'tenants' | 'seed'>,
): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (let number = 0; number < count; number += 1) tenants.push(await createTenant(info));
  for (const tenant of tenants) {
    await seedCalendar(superuserUrl('calendar'), tenant, seed);
    await seedCustomers(superuserUrl('customer'), tenant);
  }
  for (const service of ['calendar', 'customer'] as const) await finishSeeding(superuserUrl(service));
  return tenants;
}

/** The tenants take turns; each counts its own requests. */
export function createSource({ info }: Target, tenants: Tenant[], request: LoadCase['request']): Source {
  const requests = tenants.map(requestsOf);
  const refused: BenchRequest[] = [];
  let number = 0;
  const create = (): BenchRequest => {
    const turn = number;
    number += 1;
    return request(requests[turn % tenants.length]!, Math.floor(turn / tenants.length));
  };
  return { url: info.gateway, next: () => refused.shift() ?? create(), takeBack: (each) => refused.push(each) };
}
