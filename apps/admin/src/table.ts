import { style } from './terminal.ts';

/** Columns as wide as their longest cell, with the titles on top. */
export function formatTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd();
  return [style('bold', line(titles)), ...rows.map(line), ''].join('\n');
}
