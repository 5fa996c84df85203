import { startTestStack, type TestStack } from '../start-test-stack.ts';

let starting: Promise<TestStack> | undefined;

/** The stack that only the tests of this folder use: they stop its processes, measure them, or would see what other tests leave behind. */
export function stackForFaults(): Promise<TestStack> {
  return (starting ??= startTestStack());
}

export async function stopStackForFaults(): Promise<void> {
  await (await starting)?.[Symbol.asyncDispose]();
}
