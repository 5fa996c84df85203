import { afterAll } from 'vitest';
import { stopStackForFaults } from './faults/stack-with-faults.ts';

// Run one after the other on one stack: these tests stop its processes, or measure them. The doctor runs first, because
// it must find no faults.
await import('./faults/doctor.ts');
await import('./faults/long-list.ts');
await import('./faults/shared-appointments.ts');
await import('./faults/contention.ts');
await import('./faults/right-person.ts');
await import('./faults/rejected-customers.ts');
await import('./faults/outages.ts');
await import('./faults/webhooks.ts');
await import('./faults/mirrored-feed.ts');

afterAll(stopStackForFaults, 60_000);
