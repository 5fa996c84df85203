import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';

it('gives processes that choose their ports at the same time different ones', async () => {
  const children = Array.from({ length: 8 }, () => fork(`${import.meta.dirname}/port-chooser.ts`));
  try {
    const answers = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as number[]));
    const ports = answers.flat();
    expect(ports).toHaveLength(800);
    expect(new Set(ports).size).toBe(800);
  } finally {
    await Promise.all(
      children.map(async (child) => {
        child.disconnect();
        await once(child, 'exit');
      }),
    );
  }
});
