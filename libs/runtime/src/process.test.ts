import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';

const service = `
  import { createLogger, runProcess } from './index.ts';
  setInterval(() => {}, 1_000);
  await runProcess(() => ({
    logger: createLogger({ service: 'test', level: 'info' }),
    serve: async () => ({ [Symbol.asyncDispose]: async () => {} }),
  }));
`;

it('a stopped process exits with code 0, whatever is still open', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', service], { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] });
  const output: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.push(text);
    if (text.includes('"started"')) child.kill('SIGTERM');
  });
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(output.join('')).toContain('"stopped"');
});
