export { createCommand } from './create-command.ts';
export { Interrupted, type Interruption, listenForInterruption } from './interruption.ts';
