import { addressVariable, dataDirOf } from '../config.ts';
import { type AdminClient, createAdminClient } from '../demo-crm.ts';
import { styler } from '../reporter.ts';
import type { Service } from '../service-table.ts';
import { readStackFile } from '../stack-file.ts';
import { callOptions } from './call-options.ts';

export const output = process.stdout;
export const style = styler(output);
// Whoever reads the output may have seen enough (`| head`).
output.on('error', () => process.exit());

export function print(text: string): void {
  output.write(`${text}\n`);
}

export function showTime(time: Date | undefined): string {
  return time ? `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC` : '-';
}

/** Of a service of the stack in the data folder, or for operators the one in `IDENTITY_ADDRESS` and so on. */
export async function addressOf(service: Service): Promise<string> {
  return process.env[addressVariable(service)] || (await readStackFile(dataDirOf(process.env))).services[service];
}

export async function withAdmin(use: (admin: AdminClient) => Promise<void>): Promise<void> {
  using admin = createAdminClient(await addressOf('identity'), callOptions());
  await use(admin);
}
