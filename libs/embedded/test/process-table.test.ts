import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { processIsAlive } from '../src/index.ts';

it('does not consider a process alive again while its parent reaps it', async () => {
  const answers: string[] = [];
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const child = spawn('true');
    await once(child, 'spawn');
    let wasDead = false;
    while (child.exitCode === null) {
      const isAlive = await processIsAlive(child.pid!);
      if (wasDead && isAlive) answers.push(`process ${child.pid} is alive again`);
      wasDead ||= !isAlive;
    }
  }
  expect(answers).toEqual([]);
});
