import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '@scheduling/testing';
import { expect, inject, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { commandsOf, readBlocks } from '@scheduling/testing/shell-blocks';
import { createCrm, unique } from '@scheduling/test-stack/crm';

const run = promisify(execFile);
const folder = join(repositoryRoot, 'docs/guides');

/** A shell block of a guide, and what the page shows as its output. */
interface Step {
  commands: string[];
  shown: string;
}

function readSteps(file: string): Step[] {
  const steps: Step[] = [];
  for (const block of readBlocks(readFileSync(join(folder, file), 'utf8'))) {
    // The others need `npm start`.
    const commands = commandsOf(block).filter((command) => !command.startsWith('npm '));
    if (block.language === 'sh') steps.push({ commands, shown: '' });
    else if (['json', 'text'].includes(block.language)) steps.at(-1)!.shown += block.text;
  }
  return steps;
}

/** The other pages have no commands, or are for a service on the internet. */
const guides = globSync('*.md', { cwd: folder }).filter(
  (file) => !['README.md', 'webhooks.md'].includes(file) && readSteps(file).length > 0,
);

it.each(guides)('every command of %s prints what the guide shows', async (file) => {
  const crm = await createCrm({ requestsPerMinute: 6_000, sandbox: true });
  const mara = unique('mara');
  const settings = [`GATEWAY=${inject('stack').gateway}`, `CRM=${crm.crmId}`, `KEY=${crm.key}`];
  const definitions: string[] = [];
  for (const { commands, shown } of [...readSteps('README.md'), ...readSteps(file)]) {
    const given = commands.map(
      (command) =>
        settings.find((setting) => command.startsWith(setting.replace(/=.*/, '='))) ??
        command.replaceAll(/\bmara\b(?!@tour)/g, mara),
    );
    const expected = new RegExp(
      `^${RegExp.escape(shown.replaceAll(/\bmara\b(?!@tour)/g, mara)).replaceAll('…', '.*')}$`,
    );
    const check = async (): Promise<void> => {
      const { stdout } = await run('bash', ['-c', [...definitions, ...given].join('\n')]);
      expect(stdout.replaceAll('\r', ''), given.join('\n')).toMatch(expected);
    };
    // What other services tell arrives a moment later.
    await (given.some((command) => / -(d|X) /.test(command)) ? check() : eventually(check));
    definitions.push(...given.filter((command) => /^\w+(=|\(\))/.test(command)));
  }
});

it('there are guides', () => {
  expect(guides.length).toBeGreaterThan(4);
  expect(guides.map((file) => basename(file))).toContain('booking.md');
});

it('the guide about errors says what to do for every code', () => {
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
  const codes = [...read('../interface.md').matchAll(/^\| \d{3} \| `([a-z_.]+)` \|/gm)].map(([, code]) => code!);
  expect(codes.length).toBeGreaterThan(60);
  const guide = read('errors.md');
  expect(codes.filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
});

it('every link in a guide leads somewhere', () => {
  const links = globSync('*.md', { cwd: folder }).flatMap((file) => {
    return [...readFileSync(join(folder, file), 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)].map(
      ([, target, anchor]) => [join(folder, target || file), anchor] as const,
    );
  });
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter(([target, anchor]) => !anchorsOf(target).has(anchor))).toEqual([]);
});

/** The headings of a document as GitHub names them; empty if it does not exist. */
function anchorsOf(file: string): Set<string | undefined> {
  if (!existsSync(file)) return new Set();
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm);
  return new Set([
    undefined,
    ...[...headings].map(([, text]) =>
      text!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  ]);
}
