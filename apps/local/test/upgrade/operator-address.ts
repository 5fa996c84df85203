import { isReachable } from '@scheduling/embedded';
import type { DatabaseService } from '@scheduling/stack';
import type { MixedStack } from './mixed-stack.ts';

/**
 * Where the running version of a service serves operators: versions without a port for them do so on the port for the
 * services.
 */
export async function operatorAddress(
  { services, admin }: Pick<MixedStack['info'], 'services' | 'admin'>,
  service: DatabaseService,
): Promise<string> {
  const port = Number(admin[service].split(':').at(-1));
  return (await isReachable(port)) ? admin[service] : services[service];
}
