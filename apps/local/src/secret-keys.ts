import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newNamedKey } from '@scheduling/stack';
import { writeAtomically } from './data-folder.ts';

/**
 * A key that is stored in `<dataDir>/<name>`, because what was sealed or signed with it is kept, too: `webhook-key`
 * seals the secrets of webhooks (WEBHOOK_SECRET_KEYS), `link-key` signs the links of persons (LINK_KEYS).
 */
export async function ensureSecretKeys(dataDir: string, name: 'webhook-key' | 'link-key'): Promise<string> {
  const file = join(dataDir, name);
  const kept = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (kept !== '') return kept;
  const key = newNamedKey();
  await writeAtomically(file, `${key}\n`);
  return key;
}
