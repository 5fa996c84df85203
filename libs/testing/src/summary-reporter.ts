import type { Reporter, TestModule } from 'vitest/node';

const slowestShown = 10;
const longestMessage = 300;

interface Failed {
  name: string;
  errors: readonly { message: string }[];
}

/**
 * Ends the output of a run with the slowest test files, so that a file which becomes slow is noticed, and with whatever
 * failed, so that the end of a log is enough.
 */
// oxlint-disable-next-line import/no-default-export -- vitest asks for one
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const slowest = modules
      .map((module) => ({ name: nameOf(module), seconds: module.diagnostic().duration / 1_000 }))
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, slowestShown);
    if (slowest.length === slowestShown) {
      print(
        'The slowest files',
        slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(6)} s  ${name}`),
      );
    }
    const failed = modules.flatMap(failuresOf);
    if (failed.length > 0)
      print(
        'Failed',
        failed.map(
          ({ name, errors }) =>
            `${name}\n${errors.map(({ message }) => `    ${message.slice(0, longestMessage)}\n`).join('')}`,
        ),
      );
  }
}

/** The failed tests of a file, and itself and its suites if their hooks failed. */
function failuresOf(module: TestModule): Failed[] {
  const suites = [...module.children.allSuites()].map((suite) => ({ name: suite.fullName, errors: suite.errors() }));
  const hooks = [{ name: '', errors: module.errors() }, ...suites].filter(({ errors }) => errors.length > 0);
  const tests = [...module.children.allTests('failed')].map((test) => ({
    name: test.fullName,
    errors: test.result().errors ?? [],
  }));
  return [...hooks, ...tests].map(({ name, errors }) => ({ name: `${nameOf(module)} ${name}`.trimEnd(), errors }));
}

function nameOf(module: TestModule): string {
  return `${module.project.name} ${module.relativeModuleId}`;
}

function print(title: string, lines: string[]): void {
  process.stdout.write(`\n${title}:\n${lines.map((line) => `${line}\n`).join('')}`);
}
