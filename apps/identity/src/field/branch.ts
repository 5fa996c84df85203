import { DomainError } from '@scheduling/errors';

/** Interface 2.2. */
const branches = new Set(['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc']);

export function checkBranch(branch: string): void {
  if (!branches.has(branch)) throw new DomainError('branch.unknown', { text: `Unable to find specified branch. Was ${branch}` });
}
