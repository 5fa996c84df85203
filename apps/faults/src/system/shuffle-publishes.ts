import { takeNatsOperations } from '@scheduling/testing/nats-operations';
import type { Random } from '@scheduling/testing/random';
import { Transform } from 'node:stream';

/**
 * What a client sends to NATS, operation by operation. While it shuffles, each event is held for a time of its own, so
 * that later ones overtake it.
 */
export interface PublishShuffler {
  start(random: Random): void;
  stop(): void;
  /** Passes on what one connection sends. */
  transform(): Transform;
}

/** A relay waits for the acknowledgements of what it has published for 2 s. */
const longestHoldMs = 1_000;

export function createPublishShuffler(): PublishShuffler {
  let random: Random | undefined;
  return {
    start: (given) => (random = given),
    stop: () => (random = undefined),
    transform: () => {
      let received: Buffer = Buffer.alloc(0);
      const held = new Map<Buffer, NodeJS.Timeout>();
      return new Transform({
        transform(chunk: Buffer, _encoding, callback) {
          const { operations, rest } = takeNatsOperations(Buffer.concat([received, chunk]));
          received = rest;
          for (const operation of operations) {
            if (random === undefined || !isEvent(operation)) {
              this.push(operation);
              continue;
            }
            const release = (): void => {
              held.delete(operation);
              this.push(operation);
            };
            held.set(operation, setTimeout(release, random.integer(0, longestHoldMs)));
          }
          callback();
        },
        // The client has ended, but what it has sent arrives.
        flush(callback) {
          for (const [operation, timer] of held) {
            clearTimeout(timer);
            this.push(operation);
          }
          callback();
        },
      });
    },
  };
}

function isEvent(operation: Buffer): boolean {
  return /^H?PUB scheduling\.\w/i.test(operation.subarray(0, 40).toString('latin1'));
}
