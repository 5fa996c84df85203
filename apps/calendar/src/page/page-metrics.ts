import type { Metrics } from '@scheduling/runtime';
import { Counter } from 'prom-client';
import { reasonOf } from '../participation/booking-metrics.ts';

export interface PageMetrics {
  /** A time was chosen: its place is held, or not because of the limits, or because what is requested takes none. */
  chosen(crmId: string, outcome: 'held' | 'limited' | 'not_needed'): void;
  /** A form was sent: it is booked or requested, or has to be confirmed by a mail. */
  sent(crmId: string, outcome: 'booked' | 'requested' | 'pending'): void;
  /** Returns the result of `work`; if it is rejected, counts the reason and rethrows. */
  countRefusal<Result>(kind: 'choice' | 'form', crmId: string, work: Promise<Result>): Promise<Result>;
}

export function createPageMetrics(metrics: Metrics): PageMetrics {
  const [labelNames, registers] = [['crm', 'outcome'], [metrics]];
  const choices = new Counter({
    name: 'scheduling_page_choices_total',
    help: 'Times chosen on booking pages, by what became of the place (held, limited, not_needed), or the reason why it was refused (slot_taken, …)',
    labelNames,
    registers,
  });
  const forms = new Counter({
    name: 'scheduling_page_forms_total',
    help: 'Forms sent on booking pages, by what became of them (booked, requested, pending), or the reason why they were refused (slot_taken, booking_page_changed, …)',
    labelNames,
    registers,
  });
  return {
    chosen: (crm, outcome) => choices.inc({ crm, outcome }),
    sent: (crm, outcome) => forms.inc({ crm, outcome }),
    countRefusal: async (kind, crm, work) => {
      try {
        return await work;
      } catch (error) {
        (kind === 'choice' ? choices : forms).inc({ crm, outcome: reasonOf(error) });
        throw error;
      }
    },
  };
}
