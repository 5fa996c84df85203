import { ChannelCredentials, Client } from '@grpc/grpc-js';
import { service as healthService } from 'grpc-health-check';
import type { RpcCredentials } from './credentials.ts';
import type { MethodDefinition } from './definition.ts';
import { fromServiceError } from './errors.ts';

interface HealthOptions {
  /** Plain text by default. */
  credentials?: RpcCredentials | undefined;
  /** 2,000 by default. */
  timeoutMs?: number;
}

/** The only method called. Its package loads the definition at run time and does not type it. */
const { Check } = healthService as unknown as {
  Check: MethodDefinition & {
    requestSerialize: (value: { service: string }) => Buffer;
    responseDeserialize: (value: Buffer) => { status: string };
  };
};

/**
 * The status of the whole process according to the standard health service at this address, such as `SERVING`. Rejects
 * if there is no answer.
 */
export async function checkHealth(
  service: string,
  address: string,
  { credentials, timeoutMs = 2_000 }: HealthOptions = {},
): Promise<string> {
  const channelOptions = { 'grpc.ssl_target_name_override': service };
  const client = new Client(address, credentials?.channel ?? ChannelCredentials.createInsecure(), channelOptions);
  try {
    return await new Promise<string>((resolve, reject) => {
      client.makeUnaryRequest(
        Check.path,
        Check.requestSerialize,
        Check.responseDeserialize,
        { service: '' },
        { deadline: Date.now() + timeoutMs },
        (error, response) => (error ? reject(fromServiceError(error, service)) : resolve(response!.status)),
      );
    });
  } finally {
    client.close();
  }
}
