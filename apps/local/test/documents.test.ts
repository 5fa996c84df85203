import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { operatorDocuments, runBy } from '@scheduling/testing/printed-commands';
import { commandsOf, readBlocks } from '@scheduling/testing/shell-blocks';

/** How a command in the documents may begin; `call` and `scheduling` are functions in the documents. */
const programs = new Set(
  '.ci/schemathesis/run npm npx node curl git kill cd export docker kubectl helm openssl sudo cat echo ls rm for done { } call call() scheduling scheduling()'.split(
    ' ',
  ),
);

/** Those with commands. */
const guides = globSync('docs/guides/*.md', { cwd: repositoryRoot }).filter((file) =>
  readFileSync(join(repositoryRoot, file), 'utf8').includes('```sh'),
);

it.each([
  'README.md',
  'CONTRIBUTING.md',
  'docs/development.md',
  'docs/testing.md',
  'docs/recipes.md',
  'docs/reliability.md',
  ...operatorDocuments,
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

describe('the commands for operators', () => {
  const blocks = operatorDocuments
    .flatMap((file) => readBlocks(readFileSync(join(repositoryRoot, file), 'utf8')))
    // operations-sql.test.ts executes those.
    .filter(({ language }) => language !== 'sql');
  const notRun = /^not run by a test: needs \S.{10,}$/;

  it('say whether a test runs them, else why none does', () => {
    expect(blocks.filter(({ note }) => !runBy.test(note) && !notRun.test(note))).toEqual([]);
  });

  it.each(operatorDocuments)('that are in sentences of %s are of programs that it names as not run', (file) => {
    const text = readFileSync(join(repositoryRoot, file), 'utf8');
    const [, listed = ''] =
      /^<!-- Commands in sentences are not run by a test if they begin with: (.*) -->$/m.exec(text) ?? [];
    const sentences = text.replaceAll(/^ *```.*?^ *```$/gms, '');
    const begun = [...sentences.matchAll(/`(\w+) [^`]+`/g)].map(([, program]) => program!);
    // help.test.ts checks those of the admin command, and other documents are about `npm start`.
    const found = begun.filter((program) => program !== 'npm' && [...programs, 'jq', 'psql'].includes(program));
    expect([...new Set(found)].toSorted()).toEqual(listed.split(', '));
  });

  it('are read by the tests that they name', () => {
    const tests = globSync(['apps/*/test/**/*.ts', 'deploy/test/**/*.ts'], {
      cwd: repositoryRoot,
      exclude: ['**/node_modules'],
    });
    const read = tests.flatMap((test) =>
      [...readFileSync(join(repositoryRoot, test), 'utf8').matchAll(/\bprintedCommands\('([^']+)'\)/g)].map(
        ([, name]) => `${test}: ${name}`,
      ),
    );
    const named = blocks.flatMap(({ note }) => (runBy.test(note) ? [note.replace('run by ', '')] : []));
    expect(named.toSorted()).toEqual([...new Set(read)].toSorted());
  });
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
