/** Where a process can be killed: in front of a step, and right behind it. */
export type Point = `${'before' | 'after'}-${Step}`;

export type Step =
  | 'commit'
  | 'answer'
  | 'publish'
  | 'mark'
  | 'inbox-commit'
  | 'record'
  | 'ack'
  | 'data'
  | 'mark-sent'
  | 'post';

/** What the harness tells a process (crash-points.ts). */
export interface Orders {
  /** Ends the process with SIGKILL where it gets to this point for the n-th time. */
  crash?: { point: Point; after: number };
  /** How far its clock is ahead of the real one. */
  clockOffsetMs: number;
}
