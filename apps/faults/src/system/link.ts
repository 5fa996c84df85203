import { type Link, openLink } from '@scheduling/testing/link';
import { createPublishShuffler, type PublishShuffler } from './shuffle-publishes.ts';

/** The way from one process of the system to another. */
export interface SystemLink extends Link {
  name: string;
  /** Puts what goes to NATS in another order. */
  shuffle: PublishShuffler;
}

/** @param targets the ports of the processes that are ready */
export async function openSystemLink(name: string, targets: () => readonly number[]): Promise<SystemLink> {
  const shuffle = createPublishShuffler();
  return {
    ...(await openLink(targets, name.endsWith('-nats') ? () => shuffle.transform() : undefined)),
    name,
    shuffle,
  };
}
