import { withClient } from '@scheduling/embedded';
import { databaseServices } from '@scheduling/stack';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { personMark } from '../load/customers.ts';
import type { Tenant } from '../load/model.ts';
import type { System } from '../system/start-system.ts';
import { isDone } from './effects.ts';
import type { Evidence, Violation } from './evidence.ts';

const personPattern = /person-\d+-of-[a-z]+/gi;

/**
 * I5: neither an answer, nor a database, nor the files of JetStream, nor a log contains anything of a person who was
 * erased. I21: nor of a person of a provider that was deleted or erased.
 */
export async function checkErasure({ system, tenants, passing, lists, users }: Evidence): Promise<Violation[]> {
  const erased = new Set(tenants.flatMap(erasedPeople));
  const ofDeleted = `-of-${passing.mark}`.toLowerCase();
  const places = [
    ['the lists', JSON.stringify([...lists.values(), ...users.values()])] as const,
    ...(await readRows(system)),
    ...(await readFiles(join(system.folder, 'nats-disk'))),
    ...(await readFiles(join(system.folder, 'postgres-disk'), (folder) => basename(folder) === 'logs')),
    ...(await readFiles(join(system.folder, 'logs'))),
  ];
  return places.flatMap(([place, text]) => {
    const found = new Set([...text.matchAll(personPattern)].map(([person]) => person.toLowerCase()));
    const wrong = {
      I5: [...found].filter((person) => erased.has(person)),
      I21: [...found].filter((person) => person.endsWith(ofDeleted)),
    };
    return Object.entries(wrong).flatMap(([invariant, persons]): Violation[] =>
      persons.length === 0
        ? []
        : [{ invariant: invariant as Violation['invariant'], text: `${place} still contains ${persons.join(', ')}` }],
    );
  });
}

/** The marks of those who were. */
function erasedPeople({ mark, providers, users }: Tenant): string[] {
  const customers = providers
    .flatMap((provider) => provider.customers.filter(({ erased }) => isDone(erased)))
    .map(({ person }) => person);
  const deleted = users.filter((user) => isDone(user.deleted)).map(({ reference }) => reference);
  return [...customers, ...deleted].map((person) => personMark(mark, person));
}

/** The rows of all tables that contain a person's mark, as text or as bytes. */
async function readRows({ postgres }: System): Promise<(readonly [string, string])[]> {
  const read = (service: string) =>
    withClient(postgres.url(service), async (client) => {
      const tables = await client.query<{ name: string }>(
        `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
      );
      const found: (readonly [string, string])[] = [];
      for (const { name } of tables.rows) {
        const { rows } = await client.query<{ row: string }>(
          `SELECT t::text AS row FROM "${name}" AS t WHERE t::text ILIKE '%person-%' OR t::text LIKE '%${Buffer.from('person-').toString('hex')}%'`,
        );
        found.push([`${service}.${name}`, rows.map(({ row }) => withBytes(row)).join('\n')]);
      }
      return found;
    });
  return (await Promise.all(databaseServices.map(read))).flat();
}

/** Postgres shows bytes as hexadecimal digits. */
function withBytes(row: string): string {
  return row.replaceAll(/\\x([0-9a-f]+)/g, (_, hex: string) => Buffer.from(hex, 'hex').toString('latin1'));
}

/** Of the folders below this one that are wanted. */
async function readFiles(
  folder: string,
  isWanted: (folder: string) => boolean = () => true,
): Promise<(readonly [string, string])[]> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(
    (file) => file.isFile() && isWanted(file.parentPath),
  );
  // JetStream may remove one meanwhile.
  return Promise.all(
    files.map(
      async ({ parentPath, name }) => [name, await readFile(join(parentPath, name), 'latin1').catch(() => '')] as const,
    ),
  );
}
