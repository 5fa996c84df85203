/**
 * Measures what the services need under load: books through a gateway for 30 s with 32 clients and prints the memory
 * and the CPU time that each container of compose.yaml used. The requests and limits in kubernetes/ are based on it.
 *
 *   KEY=$(npm run --silent admin -- key create demo) npx node deploy/measure.ts
 *
 * Set `GATEWAY` (default http://127.0.0.1:8080) and `CRM` (default demo) to use another one.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

interface Usage {
  name: string;
  /** As a fraction of one processor, 0 to 1 and more. */
  processors: number;
  memoryMiB: number;
}

const run = promisify(execFile);
const { GATEWAY: gateway = 'http://127.0.0.1:8080', CRM: crm = 'demo', KEY: key = '' } = process.env;
const durationMs = 30_000;
const clients = 32;
const appointments = 20;
const references = Date.now().toString(36);
const provider = `/provider/${encodeURIComponent(`salon-${references}@measure`)}`;

const refusals: number[] = [];

await setUp();
const until = performance.now() + durationMs;
const [bookings, usages] = await Promise.all([
  Promise.all(Array.from({ length: clients }, (_, client) => book(client))),
  sampleUsage(),
]);
print(bookings.flat(), usages);

async function setUp(): Promise<void> {
  const [owner, account] = [`ada-${references}@measure`, `studio-${references}@measure`];
  await post('/user', {
    reference: owner,
    email: `ada-${references}@example.com`,
    username: `ada-${references}`,
    lastName: 'Lovelace',
  });
  await post('/account', { ownerReference: owner, accountReference: account, branch: 'misc' });
  await post('/provider', {
    reference: `salon-${references}@measure`,
    ownerReference: owner,
    accountReference: account,
    name: 'Salon',
  });
  for (let index = 0; index < appointments; index += 1) {
    const times = { start: '2035-01-08T10:00', end: '2035-01-08T11:00' };
    const names = {
      reference: `appointment-${index}-${references}@measure`,
      resourceReference: 'chair',
      productReference: 'cut',
      productName: 'Haircut',
    };
    await post(`${provider}/appointments`, { ...times, ...names, capacity: 1_000_000 });
  }
  for (let client = 0; client < clients; client += 1) {
    const customer = {
      customerReference: `customer-${client}-${references}@measure`,
      userName: 'Grace Hopper',
      email: `grace-${client}@example.com`,
    };
    await post(`${provider}/customers`, { ...customer, providerReference: `salon-${references}@measure` });
  }
}

/** Books sequentially; returns how long each successful booking took, in milliseconds. */
async function book(client: number): Promise<number[]> {
  const durations: number[] = [];
  for (let number = 0; performance.now() < until; number += 1) {
    const startedAt = performance.now();
    const booked = await send(`${provider}/participations`, {
      reference: `booking-${client}-${number}-${references}@measure`,
      appointmentReference: `appointment-${number % appointments}-${references}@measure`,
      customerReference: `customer-${client}-${references}@measure`,
      state: 'BOOKED',
    });
    if (booked.ok) durations.push(performance.now() - startedAt);
    else refusals.push(booked.status);
  }
  return durations;
}

async function sampleUsage(): Promise<Usage[]> {
  const composeFile = join(import.meta.dirname, 'compose.yaml');
  const containers = (await run('docker', ['compose', '--file', composeFile, 'ps', '--quiet'])).stdout
    .trim()
    .split('\n');
  const samples: Usage[] = [];
  while (performance.now() < until) {
    const { stdout } = await run('docker', [
      'stats',
      '--no-stream',
      '--format',
      '{{.Name}} {{.CPUPerc}} {{.MemUsage}}',
      ...containers,
    ]);
    for (const [, name = '', percent, memory, unit] of stdout.matchAll(/^(\S+) ([\d.]+)% ([\d.]+)(MiB|GiB)/gm)) {
      samples.push({
        name,
        processors: Number(percent) / 100,
        memoryMiB: Number(memory) * (unit === 'GiB' ? 1_024 : 1),
      });
    }
  }
  return samples;
}

function print(durations: number[], samples: Usage[]): void {
  const sorted = durations.toSorted((one, other) => one - other);
  const at = (share: number): string => `${Math.round(sorted[Math.floor(sorted.length * share)] ?? 0)} ms`;
  process.stdout.write(
    `${Math.round(sorted.length / (durationMs / 1_000))} bookings a second; half within ${at(0.5)}, 99 of 100 within ${at(0.99)}; ${refusals.length} refused\n`,
  );
  for (const [name, usages = []] of Object.entries(Object.groupBy(samples, (usage) => usage.name)).toSorted(
    ([one], [other]) => one.localeCompare(other),
  )) {
    const processors = usages.reduce((sum, usage) => sum + usage.processors, 0) / usages.length;
    const memoryMiB = Math.max(...usages.map((usage) => usage.memoryMiB));
    process.stdout.write(
      `${name.padEnd(28)} ${processors.toFixed(2)} processors  ${Math.round(memoryMiB).toString().padStart(4)} MiB\n`,
    );
  }
}

async function post(path: string, body: object): Promise<void> {
  const response = await send(path, body);
  if (!response.ok) throw new Error(`POST ${path} was answered with ${response.status}`);
}

async function send(path: string, body: object): Promise<Response> {
  const headers = { 'X-SERVICE-CLIENT-ID': key, 'Content-Type': 'application/json' };
  const response = await fetch(`${gateway}/crms/${crm}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
  return response;
}
