import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { processHasStopped, processIsAlive, waitUntil } from '../src/index.ts';

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

it('knows whether all threads of a process have stopped', async () => {
  const code = "new (require('node:worker_threads').Worker)('for (;;);', { eval: true }); console.log('started');";
  const child = spawn(process.execPath, ['--eval', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  expect(await processHasStopped(child.pid!)).toBe(false);
  child.kill('SIGSTOP');
  await waitUntil(() => processHasStopped(child.pid!), { what: 'the process to stop', timeoutMs: 30_000 });
  child.kill('SIGCONT');
  await waitUntil(async () => !(await processHasStopped(child.pid!)), {
    what: 'the process to go on',
    timeoutMs: 30_000,
  });
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await processHasStopped(child.pid!)).toBe(true);
});
