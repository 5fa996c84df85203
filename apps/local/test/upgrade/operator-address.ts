import { isReachable } from '@scheduling/embedded';
import type { DatabaseService } from '@scheduling/stack';

/**
 * Where the running version of a service serves operators: versions without a port for them do so on the port for the
 * services.
 */
export async function operatorAddress(
  { services, admin }: Record<'services' | 'admin', Record<DatabaseService, string>>,
  service: DatabaseService,
): Promise<string> {
  const port = Number(admin[service].split(':').at(-1));
  return (await isReachable(port)) ? admin[service] : services[service];
}
