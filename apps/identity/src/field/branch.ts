import { DomainError } from '@scheduling/errors';
import { branches } from '@scheduling/runtime';

export function checkBranch(branch: string): void {
  if (!(branches as readonly string[]).includes(branch))
    throw new DomainError('branch.unknown', { text: `Unable to find specified branch. Was ${branch}` });
}
