import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';

/** A bash that keeps what its commands define, as the terminal of a reader does. */
export function openShell() {
  // A group of its own: what the commands leave running ends with it.
  const bash = spawn('bash', ['--noprofile', '--norc'], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => bash.once('exit', () => resolve()));
  bash.stdout.setEncoding('utf8');
  let output = '';
  let notice = (): void => {};
  bash.stdout.on('data', (text: string) => {
    output += text;
    notice();
  });
  return {
    /** Returns what the commands print, with the line ends of Unix. */
    async run(commands: string): Promise<string> {
      const end = `\n${randomUUID()}\n`;
      output = '';
      bash.stdin.write(`${commands}\nprintf '${end.replaceAll('\n', '\\n')}'\n`);
      while (!output.includes(end)) {
        await Promise.race([
          new Promise<void>((resolve) => (notice = resolve)),
          ended.then(() => Promise.reject(new Error(`The shell has ended: ${output}`))),
        ]);
      }
      return output.split(end)[0]!.replaceAll('\r', '');
    },
    async [Symbol.asyncDispose](): Promise<void> {
      if (bash.exitCode === null) process.kill(-bash.pid!, 'SIGKILL');
      await ended;
    },
  };
}
