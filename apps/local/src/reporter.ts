import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Reports progress, to a terminal or to a log. */
export interface Reporter {
  /** Runs a step and reports its completion and how long it took. */
  step<T>(label: string, work: () => Promise<T>): Promise<T>;
  note(message: string): void;
  warn(message: string): void;
  /** Prints text unchanged, for the banner. */
  write(text: string): void;
}

/** Uses colours if the stream is a terminal and NO_COLOR is not set. */
export function styler(stream: NodeJS.WriteStream): (style: Style, text: string) => string {
  return (style, text) => styleText(style, text, { stream });
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 100;

export function createReporter(stream: NodeJS.WriteStream): Reporter {
  // The reader of the output may close the pipe (`npm start | head`); the work continues silently.
  stream.on('error', () => {});
  const style = styler(stream);
  const running = new Set<string>();
  let frame = 0;
  let timer: NodeJS.Timeout | undefined;

  const clear = (): void => {
    if (stream.isTTY) stream.write('\r\u001B[2K');
  };
  const draw = (): void => {
    if (!stream.isTTY || running.size === 0) return;
    frame += 1;
    const text = `  ${frames[frame % frames.length]} ${[...running].join(', ')} …`;
    stream.write(`\r\u001B[2K${style('dim', text.slice(0, (stream.columns || 80) - 1))}`);
  };
  const line = (text: string): void => {
    clear();
    stream.write(`${text}\n`);
    draw();
  };
  const started = (label: string): void => {
    running.add(label);
    timer ??= setInterval(draw, frameMs).unref();
  };
  const ended = (label: string): void => {
    running.delete(label);
    if (running.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    clear();
  };

  return {
    step: async (label, work) => {
      const startedAt = performance.now();
      started(label);
      try {
        const result = await work();
        ended(label);
        line(
          `  ${style('green', '✔')} ${label} ${style('dim', `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)}`,
        );
        return result;
      } catch (error) {
        ended(label);
        line(`  ${style('red', '✘')} ${label}`);
        throw error;
      }
    },
    note: (message) => line(`  ${style('dim', `· ${message}`)}`),
    warn: (message) => line(`  ${style('yellow', `! ${message}`)}`),
    write: (text) => {
      clear();
      stream.write(text);
    },
  };
}
