import { Transform } from 'node:stream';
import type { Random } from '../random.ts';

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
      let received = Buffer.alloc(0);
      let held: Buffer[] = [];
      const release = (stream: Transform): void => {
        for (const event of random?.shuffled(held) ?? held) stream.push(event);
        held = [];
      };
      return new Transform({
        transform(chunk: Buffer, _encoding, callback) {
          received = Buffer.concat([received, chunk]);
          for (let length = lengthOfFirst(received); length <= received.length; length = lengthOfFirst(received)) {
            const operation = received.subarray(0, length);
            received = received.subarray(length);
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

/** Infinity while its first line is not complete. A message follows its line and ends with a line break, too. */
function lengthOfFirst(received: Buffer): number {
  const lineLength = received.indexOf('\r\n') + 2;
  if (lineLength < 2) return Number.POSITIVE_INFINITY;
  const line = received.toString('latin1', 0, lineLength - 2);
  return /^H?PUB /i.test(line) ? lineLength + Number(line.split(' ').at(-1)) + 2 : lineLength;
}
