import { reportMemory } from '@scheduling/testing/held-memory';
import { createCrm, createPractice, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { startTestStack, type TestStack } from '@scheduling/test-stack/start-test-stack';

let starting: Promise<TestStack> | undefined;

/**
 * A stack that only the tests of this folder use: they stop its processes, measure them, or would be disturbed by data
 * of other tests. Its processes report their memory.
 */
export function stackForFaults(): Promise<TestStack> {
  return (starting ??= startTestStack({ NODE_OPTIONS: reportMemory }));
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
