import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBlocks } from './shell-blocks.ts';

/** Those with commands that an operator types. */
export const operatorDocuments = ['docs/installation.md', 'docs/operations.md'];

const root = join(import.meta.dirname, '../../..');

/** How the line above a block of commands says whether a test runs it, such as "run by deploy/test/a.test.ts: back up". */
export const runBy = /^run by (?<test>\S+): (?<name>.+)$/;

/** The commands with this name in a document for operators, as they are printed. */
export function printedCommands(name: string): string {
  const blocks = operatorDocuments.flatMap((file) => readBlocks(readFileSync(join(root, file), 'utf8')));
  const block = blocks.find(({ note }) => runBy.exec(note)?.groups?.['name'] === name);
  if (block === undefined) throw new Error(`no document for operators has commands with the name "${name}"`);
  return block.text;
}
