import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';

/** @param stop the statements with which the service stops */
function startProcess(stop = '') {
  const service = `
    import { createLogger, runProcess } from './index.ts';
    setInterval(() => {}, 1_000);
    await runProcess(() => ({
      logger: createLogger({ service: 'test', level: 'info' }),
      serve: async () => ({ [Symbol.asyncDispose]: async () => { ${stop} } }),
    }));
  `;
  return spawn(process.execPath, ['--input-type=module', '--eval', service], {
    cwd: import.meta.dirname,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

it('a stopped process exits with code 0, whatever is still open', async () => {
  const child = startProcess();
  const output: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.push(text);
    if (text.includes('"started"')) child.kill('SIGTERM');
  });
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(output.join('')).toContain('"stopped"');
});

it('a process that stops is not interrupted by further signals', async () => {
  const child = startProcess("await new Promise((resolve) => process.stdin.once('data', resolve))");
  let signals = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes('"started"')) child.kill('SIGTERM');
    if (!text.includes('"stopping"')) return;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) signals += Number(child.kill(signal));
    child.stdin.write('\n');
  });
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(signals).toBe(2);
});
