import type { Reporter, TestModule } from 'vitest/node';

const shown = 10;

/** Lists the slowest test files at the end of a run, so that a file which becomes slow is noticed. */
// oxlint-disable-next-line import/no-default-export -- vitest asks for one
export default class SlowestFilesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const slowest = modules
      .map((module) => ({ name: `${module.project.name} ${module.relativeModuleId}`, seconds: module.diagnostic().duration / 1_000 }))
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, shown);
    if (slowest.length < shown) return;
    process.stdout.write(`\nThe slowest files:\n${slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(6)} s  ${name}\n`).join('')}`);
  }
}
