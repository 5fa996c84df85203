import { fileURLToPath } from 'node:url';
import { createCrm, createPractice, type Practice, type TestCrm } from '../crm.ts';
import { startTestStack, type TestStack } from '../start-test-stack.ts';

let starting: Promise<TestStack> | undefined;

/**
 * A stack that only the tests of this folder use: they stop its processes, measure them, or would be disturbed by data of other tests.
 * Its processes report their memory when they receive SIGUSR2 (`report-memory.cjs`).
 */
export function stackForFaults(): Promise<TestStack> {
  return (starting ??= startTestStack({ NODE_OPTIONS: `--expose-gc --require="${fileURLToPath(import.meta.resolve('./report-memory.cjs'))}"` }));
}

/** A CRM of its own on this stack, with a practice. */
export async function practiceForFaults(): Promise<{ stack: TestStack; crm: TestCrm; practice: Practice }> {
  const stack = await stackForFaults();
  const crm = await createCrm({}, stack.info);
  return { stack, crm, practice: await createPractice(crm) };
}

export async function stopStackForFaults(): Promise<void> {
  await (await starting)?.[Symbol.asyncDispose]();
}
