import { type Service, services } from '@scheduling/stack';
import { watch } from 'node:fs/promises';
import { join } from 'node:path';

/** Editors and version control write several files at once. */
const settleMs = 150;

/**
 * Calls `onChange` with the services whose code has changed: one of them, or all for a lib. Tests are not part of a
 * service. Returns when the signal aborts.
 */
export async function watchCode(
  root: string,
  onChange: (changed: Service[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const changed = new Set<Service>();
  let timer: NodeJS.Timeout | undefined;
  const report = (): void => {
    onChange([...changed]);
    changed.clear();
  };
  const watchFolder = async (folder: string): Promise<void> => {
    for await (const { filename } of watch(join(root, folder), { recursive: true, signal })) {
      for (const service of servicesOf(join(folder, filename ?? ''))) changed.add(service);
      clearTimeout(timer);
      if (changed.size > 0) timer = setTimeout(report, settleMs);
    }
  };
  try {
    await Promise.all(['apps', 'libs'].map(watchFolder));
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
}

function servicesOf(path: string): readonly Service[] {
  const [kind = '', name = '', folder] = path.split('/');
  if (folder !== 'src' || !/\.(ts|sql|eta)$/.test(path) || path.endsWith('.test.ts')) return [];
  if (kind === 'libs') return services;
  return services.filter((service) => service === name);
}
