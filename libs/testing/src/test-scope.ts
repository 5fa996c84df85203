/** `npm test` is to be fast, and CI repeats what it leaves out. Vitest on its own runs all, too. */
const isReduced = process.env['TEST_SCOPE'] === 'services';
const part = 4;

/** Of generated cases that resemble each other: a quarter in `npm test`, others in each run; all of them elsewhere. */
export function someOf<Case>(cases: readonly Case[]): Case[] {
  if (!isReduced) return [...cases];
  const first = Math.floor(Math.random() * part);
  return cases.filter((_, index) => (index + first) % part === 0);
}
