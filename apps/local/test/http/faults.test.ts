import { afterAll } from 'vitest';
import { stopStackForFaults } from './faults/stack.ts';

// One after the other on one stack: these tests stop its processes, or measure them. The doctor comes first, because it must find nothing.
await import('./faults/doctor.ts');
await import('./faults/long-list.ts');
await import('./faults/contention.ts');
await import('./faults/outages.ts');

afterAll(stopStackForFaults, 60_000);
