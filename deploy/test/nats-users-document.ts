import { natsUsersConfiguration } from '@scheduling/events';
import { join } from 'node:path';
import { deployFolder } from './kustomizations.ts';

/** Copies, because kustomize reads no file outside of its folder. */
export const natsUsersFiles = ['compose', 'kubernetes/examples'].map((folder) =>
  join(deployFolder, folder, 'nats-users.conf'),
);

export function natsUsersDocument(): string {
  return `# Generated from libs/events/src/nats-users.ts: node deploy/write-nats-users.ts\n${natsUsersConfiguration()}`;
}
