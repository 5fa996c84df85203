import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { commandsOf, readBlocks } from '@scheduling/testing/shell-blocks';

/** How a command in the documents may begin; `call` and `scheduling` are functions in the documents. */
const programs = new Set(
  'npm npx node git kill cd export docker kubectl helm openssl sudo cat echo ls rm for done { } call call() scheduling scheduling()'.split(
    ' ',
  ),
);

/** Those with commands. */
const guides = globSync('docs/guides/*.md', { cwd: repositoryRoot }).filter((file) =>
  readFileSync(join(repositoryRoot, file), 'utf8').includes('```sh'),
);

it.each([
  'README.md',
  'docs/development.md',
  'docs/testing.md',
  'docs/recipes.md',
  'docs/reliability.md',
  'docs/installation.md',
  'docs/operations.md',
  'deploy/README.md',
  'deploy/chart/README.md',
  ...guides,
])('every shell block of %s can be pasted into bash and zsh', (file) => {
  const blocks = readBlocks(readFileSync(join(repositoryRoot, file), 'utf8')).filter(
    ({ language }) => language === 'sh',
  );
  expect(blocks).not.toEqual([]);
  expect(blocks.flatMap(commandsOf).flatMap(findFaults)).toEqual([]);
});

function findFaults(command: string): string[] {
  const bare = command.replaceAll(/'[^']*'|"[^"]*"/g, "''").replaceAll(/\$\([^)]*\)/g, "''");
  const [program = ''] = bare.replace(/^(\w+=\S* ?)+/, '').split(' ');
  return [
    ...(/(^|\s)#/.test(bare) ? [`zsh takes the comment for arguments: ${command}`] : []),
    ...(/…|<\w+>/.test(bare) ? [`the shell takes the placeholder literally: ${command}`] : []),
    ...(program === '' || programs.has(program)
      ? []
      : [`not a command; an output belongs in a block of its own: ${command}`]),
  ];
}
