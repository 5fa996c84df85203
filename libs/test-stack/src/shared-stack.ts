import type { StackInfo } from '@scheduling/stack';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The one stack that all files of a project share; the global set-up of the project provides it. */
    stack: StackInfo;
  }
}

export function sharedStack(): StackInfo {
  return inject('stack');
}
