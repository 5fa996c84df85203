import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { databaseServices } from '@scheduling/stack';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';

/** Every place that still contains the word: rows of all databases, the files of JetStream, the logs. */
export async function findWord(stack: Pick<TestStack, 'info' | 'dataDir'>, word: string): Promise<string[]> {
  const found = await findRows(word, stack.info);
  for (const folder of ['nats', 'logs']) {
    for (const file of await readdir(join(stack.dataDir, folder), { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const content = await readFile(join(file.parentPath, file.name)).catch(() => Buffer.alloc(0));
      if (content.includes(word)) found.push(join(folder, file.name));
    }
  }
  return found;
}

/** The tables of all databases with rows that contain the word, in the order of databaseServices and then by name. */
export async function findRows(word: string, info?: TestStack['info']): Promise<string[]> {
  const hex = Buffer.from(word).toString('hex');
  const found: string[] = [];
  for (const database of databaseServices) {
    const tables = await query<{ name: string }>(
      database,
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
      [],
      info,
    );
    const counts = tables.map(
      ({ name }) =>
        `SELECT '${name}' AS name, count(*)::int AS count FROM "${name}" AS t WHERE t::text ILIKE $1 OR t::text ILIKE $2`,
    );
    const rows = await query<{ name: string; count: number }>(
      database,
      `${counts.join(' UNION ALL ')} ORDER BY name`,
      [`%${word}%`, `%${hex}%`],
      info,
    );
    for (const { name, count } of rows) if (count > 0) found.push(`${count} rows of ${database}.${name}`);
  }
  return found;
}
