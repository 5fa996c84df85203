import { useStackForFaults } from './faults/stack.ts';

useStackForFaults();

// One after the other: all of them stop processes of the stack.
await import('./faults/right-person.ts');
await import('./faults/rejected-customers.ts');
await import('./faults/outages.ts');
await import('./faults/webhooks.ts');
