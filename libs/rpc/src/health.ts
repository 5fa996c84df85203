import { service as healthService } from 'grpc-health-check';
import { type ClientOptions, createClient } from './client.ts';
import type { MethodDefinition } from './definition.ts';

/** The only method called. Its package loads the definition at run time and does not type it. */
const { Check } = healthService as unknown as {
  Check: MethodDefinition & { responseDeserialize: (value: Buffer) => { status: string } };
};

/**
 * The status of the whole process according to the standard health service at this address, such as `SERVING`. Rejects
 * if there is no answer.
 */
export async function checkHealth(service: string, address: string, options: ClientOptions = {}): Promise<string> {
  using client = createClient({ Check }, service, address, options);
  const { status } = await client.Check({ service: '' });
  return status;
}
