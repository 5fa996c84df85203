import { DomainError } from '@scheduling/errors';
import { type Logger, within } from '@scheduling/runtime';
import type { ServerWatch } from './server-watch.ts';
import type { SingleCommit } from './single-commit.ts';

/**
 * Whether a database with synchronous replication is still on the server to which its connections lead, and whether
 * anything can be committed there. Without synchronous replication nobody can know, and nothing is required.
 */
export interface CommitWatch {
  /**
   * Rejects with `database.unavailable` unless a commit, or else a new connection, has shown that the database was on
   * this server a quarter of a second ago, or later.
   */
  requireCurrent(): Promise<void>;
  /** @throws DomainError `database.unavailable` if a commit has not finished for two seconds */
  requireCommits(): void;
}

export interface CommitWatchOptions {
  commit: SingleCommit;
  server: ServerWatch;
  logger: Logger;
}

/** For how long it counts that the database was on a server. */
const currentMs = 250;
/** After this time, it is found out again while the callers go on. */
const earlyMs = currentMs / 2;
/** How long a commit may take before a new connection is asked instead. */
const promptMs = 300;
/** If a commit takes longer, no other is begun: each would keep a connection of the server until it can finish. */
const finishMs = 2_000;
/** For how long others fail like one that has failed. */
const failedMs = 200;

const unfinished = 'a commit does not finish: is the synchronous standby away?';

/** A primary whose synchronous standby has been promoted finishes no commit. */
export function createCommitWatch({ commit, server, logger }: CommitWatchOptions): CommitWatch {
  let currentSinceMs = Number.NEGATIVE_INFINITY;
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    const askedMs = performance.now();
    const sinceMs = await within(commit.make(), promptMs).then(
      () => askedMs,
      (error: unknown) => {
        logger.warn({ err: error }, commit.isUnfinishedAfter(promptMs) ? unfinished : 'nothing could be committed');
        return server.verify();
      },
    );
    currentSinceMs = Math.max(currentSinceMs, sinceMs);
  }

  function renewed(): Promise<void> {
    if (renewing !== undefined) return renewing;
    const forget = (): void => void (renewing = undefined);
    renewing = renew();
    renewing.then(forget, () => setTimeout(forget, failedMs).unref());
    return renewing;
  }

  function renewIfOlderThan(ms: number): void {
    if (currentSinceMs < performance.now() - ms) renewed().catch(() => undefined);
  }

  const isCurrentAt = (atMs: number): boolean => !server.isReplicated || currentSinceMs >= atMs;

  return {
    requireCurrent: async () => {
      if (!server.isReplicated) return;
      const enoughMs = performance.now() - currentMs;
      // Each time that a commit does not finish, a connection is made.
      renewIfOlderThan(commit.isUnfinishedAfter(promptMs) ? currentMs : earlyMs);
      // What is being found out may have been asked too early.
      while (!isCurrentAt(enoughMs)) await renewed();
    },
    requireCommits: () => {
      if (!server.isReplicated) return;
      if (!commit.isUnfinishedAfter(0)) renewIfOlderThan(currentMs);
      else if (commit.isUnfinishedAfter(finishMs)) {
        throw new DomainError('database.unavailable', { cause: new Error(unfinished) });
      }
    },
  };
}
