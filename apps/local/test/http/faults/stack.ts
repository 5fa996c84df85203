import { startTestStack, type TestStack } from '../start-test-stack.ts';

let starting: Promise<TestStack> | undefined;

/** A stack that only the tests of this folder use: they stop its processes, measure them, or would be disturbed by data of other tests. */
export function stackForFaults(): Promise<TestStack> {
  return (starting ??= startTestStack());
}

export async function stopStackForFaults(): Promise<void> {
  await (await starting)?.[Symbol.asyncDispose]();
}
