import { DomainError } from '@scheduling/errors';
import { isAddress } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { randomInt } from 'node:crypto';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { derivedAddress, maxNumberDigits } from '../field/email-address.ts';
import { hasScope, loginNameKey } from './login-names.ts';

/** How many addresses one CRM may derive from the same one (interface 8). */
const maxDerivedPerCrm = 1_000;

/** Numbers with so many digits are tried in their order, so that a derived address is short and easy to predict. */
const digitsInOrder = 4;

const randomNumbers = 20;

/**
 * local1@, local2@, …: the first one that is free. The caller holds the lock on the address.
 *
 * No CRM can take all of them away from the others. It derives a limited number of addresses itself, but several CRMs
 * can do so, and any CRM may have users whose own addresses look like derived ones: student1@ to student20000@ may be
 * real people, so these are not limited. If all numbers that are tried in order are taken, a random one follows. So the
 * search is short, whatever has been taken: at most five queries.
 *
 * Rejects with `user.email_taken` when the CRM has reached its limit, or the domain is so long that there is no room
 * for a number.
 */
export async function findFreeDerivedAddress(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  email: string,
): Promise<string> {
  if ((await countDerived(tx, crm.crmId, email)) >= maxDerivedPerCrm) throw new DomainError('user.email_taken');
  for (let digits = 1; digits <= digitsInOrder; digits += 1) {
    const free = await findFirstFree(tx, crm, email, numbersWith(digits));
    if (free !== undefined) return free;
  }
  const free = await findFirstFree(tx, crm, email, randomNumbersWith(maxNumberDigits));
  if (free === undefined) throw new DomainError('user.email_taken');
  return free;
}

async function countDerived(tx: Transaction<IdentitySchema>, crmId: string, email: string): Promise<number> {
  const { count } = await tx
    .selectFrom('appUser')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('crmId', '=', crmId)
    .where(isAddress(sql.ref('email_derived_from'), email))
    .executeTakeFirstOrThrow();
  return count;
}

/** All numbers have as many digits. */
async function findFirstFree(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  email: string,
  numbers: number[],
): Promise<string | undefined> {
  const [first] = numbers;
  const firstAddress = derivedAddress(email, first!);
  if (firstAddress === undefined) return undefined;
  const candidates = numbers.map((number) => derivedAddress(email, number)!);
  // All have the same text before their numbers, so their keys have, too.
  const withoutNumber = firstAddress.replace(`${first}@`, '@');
  const { rows } = await sql<{ candidate: string }>`
    WITH whole AS MATERIALIZED (SELECT address_key(${withoutNumber}) AS key),
         parts AS MATERIALIZED (SELECT left(key, strpos(key, '@') - 1) AS local, substr(key, strpos(key, '@')) AS domain FROM whole)
    SELECT candidate
      FROM parts, unnest(${candidates}::text[], ${numbers}::text[], ${candidates.map((candidate) => loginNameKey(crm, candidate))}::text[])
             WITH ORDINALITY AS candidates (candidate, number, candidate_key, place)
     WHERE NOT EXISTS (SELECT FROM app_user WHERE ${hasScope('email_key', crm)} AND address_key(email) = local || number || domain)
       AND NOT EXISTS (SELECT FROM app_user WHERE email_key = candidate_key)
     ORDER BY place
     LIMIT 1`.execute(tx);
  return rows[0]?.candidate;
}

/** 1 to 9, 10 to 99, … */
function numbersWith(digits: number): number[] {
  const first = 10 ** (digits - 1);
  return Array.from({ length: 9 * first }, (_, index) => first + index);
}

function randomNumbersWith(digits: number): number[] {
  return Array.from({ length: randomNumbers }, () => randomInt(10 ** (digits - 1), 10 ** digits));
}
