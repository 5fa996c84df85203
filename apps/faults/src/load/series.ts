import { firstDayMs, timeOf } from './appointments.ts';
import type { Worker } from './worker.ts';

const hourMs = 3_600_000;

/** Its references are generated, so only the Idempotency-Key keeps a repetition from making another one. */
export async function createSeries({ provider, journal, random }: Worker): Promise<void> {
  const { tenant } = provider;
  const operation = journal.begin('create series');
  const count = random.integer(2, 6);
  const product = tenant.newReference('series');
  provider.series.push({ product, count, created: operation });
  const startMs = firstDayMs + 365 * 24 * hourMs;
  const series = { from: timeOf(startMs), to: timeOf(startMs + count * hourMs), raster: 60 };
  const body = { series_data: series, capacity: 1, resourceReference: 'hall@load', productReference: product };
  await tenant.client.change(
    operation,
    { method: 'POST', path: `${provider.at}/appointments`, body },
    { withKey: true },
  );
}
