import { DomainError } from '@scheduling/errors';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newRequestId, runWithContext } from '@scheduling/runtime';
import type { AdminClient } from '@scheduling/stack/admin-client';
import { writeAtomically } from './data-folder.ts';

export const demoCrmId = 'demo';

/**
 * Ensures that the CRM `demo`, a sandbox with default settings, exists, and returns an API key for it. The key is
 * stored in `<dataDir>/demo-key`; a new one is issued only if that one no longer works.
 */
export function ensureDemoCrm(admin: AdminClient, dataDir: string): Promise<string> {
  return runWithContext({ requestId: newRequestId(), operator: 'npm start' }, () => ensure(admin, dataDir));
}

async function ensure(admin: AdminClient, dataDir: string): Promise<string> {
  await admin.createCrm({ crmId: demoCrmId, name: 'Demo', sandbox: true }).catch((error: unknown) => {
    if (!(error instanceof DomainError && error.code === 'crm.exists')) throw error;
  });
  const file = join(dataDir, 'demo-key');
  const kept = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (kept && (await isActive(admin, kept))) return kept;
  const { key } = await admin.createKey({ crmId: demoCrmId });
  await writeAtomically(file, `${key}\n`);
  return key;
}

async function isActive(admin: AdminClient, key: string): Promise<boolean> {
  const { apiKeys } = await admin.listKeys({ crmId: demoCrmId });
  return apiKeys.some(({ prefix, revokedAt, expiresAt }) => key.startsWith(prefix) && !revokedAt && !expiresAt);
}
