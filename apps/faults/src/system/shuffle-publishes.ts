import { takeNatsOperations } from '@scheduling/testing/nats-operations';
import type { Random } from '@scheduling/testing/random';
import { Transform } from 'node:stream';

/** What a client sends to NATS, operation by operation. While it shuffles, events are held for a moment and passed on in another order. */
export interface PublishShuffler {
  start(random: Random): void;
  stop(): void;
  /** Passes on what one connection sends. */
  transform(): Transform;
}

const holdMs = 150;

export function createPublishShuffler(): PublishShuffler {
  let random: Random | undefined;
  return {
    start: (given) => (random = given),
    stop: () => (random = undefined),
    transform: () => {
      let received: Buffer = Buffer.alloc(0);
      let held: Buffer[] = [];
      const release = (stream: Transform): void => {
        for (const event of random?.shuffled(held) ?? held) stream.push(event);
        held = [];
      };
      return new Transform({
        transform(chunk: Buffer, _encoding, callback) {
          const { operations, rest } = takeNatsOperations(Buffer.concat([received, chunk]));
          received = rest;
          for (const operation of operations) {
            if (random === undefined || !isEvent(operation)) {
              this.push(operation);
              continue;
            }
            if (held.length === 0) setTimeout(() => release(this), holdMs);
            held.push(operation);
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
