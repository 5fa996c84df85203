import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient, type RpcClient } from '@scheduling/rpc';
import { type DatabaseService, EnvironmentError } from '@scheduling/runtime';
import { styleText } from 'node:util';
import { callOptions } from './call-options.ts';
import { addressVariable, readConfig } from './config.ts';

export const output = process.stdout;
// The reader of the output may close the pipe (`| head`).
output.on('error', () => process.exit());

/** Uses colours if the output is a terminal and NO_COLOR is not set. */
export function style(format: Parameters<typeof styleText>[0], text: string): string {
  return styleText(format, text, { stream: output });
}

export function print(text: string): void {
  output.write(`${text}\n`);
}

export function showTime(time: Date | undefined): string {
  return time ? `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC` : '-';
}

/** The address of a service, from `IDENTITY_ADDRESS` and so on. */
export function addressOf(service: DatabaseService): string {
  const address = readConfig(process.env).services[service];
  if (address === undefined)
    throw new EnvironmentError([
      `${addressVariable(service)} is required: the gRPC address of ${service} for operators, host:port`,
    ]);
  return address;
}

/** Calls identity's RPCs for operators. */
export async function withAdmin(use: (admin: RpcClient<AdminServiceService>) => Promise<void>): Promise<void> {
  using admin = createClient(AdminServiceService, 'identity', addressOf('identity'), callOptions());
  await use(admin);
}
