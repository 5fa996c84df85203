import type { Metrics } from '@scheduling/runtime';
import { Counter } from 'prom-client';

export interface SlotMetrics {
  /** So many slots were in a list. */
  listed(crmId: string, slots: number): void;
}

export function createSlotMetrics(metrics: Metrics): SlotMetrics {
  const listed = new Counter({
    name: 'scheduling_slots_listed_total',
    help: 'Slots returned by lists of slots',
    labelNames: ['crm'],
    registers: [metrics],
  });
  return { listed: (crm, slots) => listed.inc({ crm }, slots) };
}
