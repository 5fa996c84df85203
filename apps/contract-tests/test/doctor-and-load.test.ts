import { useStackForFaults } from './faults/stack.ts';

useStackForFaults();

// One after the other: the doctor must find no faults at first, and the others measure the processes of the stack.
await import('./faults/doctor.ts');
await import('./faults/long-list.ts');
await import('./faults/shared-appointments.ts');
await import('./faults/contention.ts');
