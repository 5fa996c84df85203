import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newSecretKeys } from '@scheduling/stack';
import { writeAtomically } from './data-folder.ts';

/**
 * The key that seals the secrets of webhooks, as WEBHOOK_SECRET_KEYS. It is stored in `<dataDir>/webhook-key`, because
 * the database is kept, too.
 */
export async function ensureSecretKeys(dataDir: string): Promise<string> {
  const file = join(dataDir, 'webhook-key');
  const kept = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (kept !== '') return kept;
  const key = newSecretKeys();
  await writeAtomically(file, `${key}\n`);
  return key;
}
