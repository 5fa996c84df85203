import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@scheduling/testing';
import { freePort } from '@scheduling/embedded';
import { expect, inject, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { commandsOf, readBlocks } from '@scheduling/testing/shell-blocks';
import { createCrm, type TestCrm, unique } from '@scheduling/test-stack/crm';
import { openShell } from './shell.ts';

const folder = join(repositoryRoot, 'docs/guides');
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

/** A shell block of a guide, and what the page shows as its output. */
interface Step {
  commands: string[];
  shown: string;
}

/** In the order of the table. */
const guides = [...read('README.md').matchAll(/^\| \[[^\]]+\]\(([a-z-]+\.md)\) \|/gm)].map(([, file]) => file!);
const guidesWithCommands = guides.filter((file) => readSteps(read(file)).length > 0);
const quickStart = readFileSync(join(repositoryRoot, 'README.md'), 'utf8')
  .split(/^## /m)
  .find((section) => section.startsWith('Five minutes'))!;

function readSteps(markdown: string): Step[] {
  const steps: Step[] = [];
  for (const block of readBlocks(markdown)) {
    if (block.language === 'sh') steps.push({ commands: commandsOf(block), shown: '' });
    else if (['json', 'text'].includes(block.language) && steps.length > 0) steps.at(-1)!.shown += block.text;
  }
  return steps;
}

it('the table has every guide', () => {
  expect(guides.toSorted()).toEqual(globSync('*.md', { cwd: folder, exclude: ['README.md'] }).toSorted());
  expect(guidesWithCommands.length).toBeGreaterThan(14);
});

it.each(guidesWithCommands)('%s can be followed alone, and prints what it shows', async (file) => {
  await using reader = await startReading();
  await reader.follow(read('README.md'));
  await reader.follow(read(file));
  expect(readSteps(read(file))).not.toEqual([]);
});

it('the quick start and all guides can be followed in their order, in one shell', async () => {
  await using reader = await startReading();
  await reader.follow(quickStart);
  await reader.follow(read('README.md'));
  const variables = await reader.variables();
  const settings = await reader.settings();
  for (const file of guidesWithCommands) {
    await reader.follow(read(file));
    expect(await reader.variables(), `what the shell has after ${file}`).toEqual(variables);
    expect(await reader.settings(), `what ${file} leaves behind`).toEqual(settings);
    expect(await reader.secondsAhead(), `the clock after ${file}`).toBe(0);
  }
}, 300_000);

it.each(guidesWithCommands)('%s says before its first command what it needs', (file) => {
  const [introduction = ''] = read(file).split(/^```sh$/m);
  expect(introduction).toContain('[Preparation](README.md#preparation)');
  if (/\/sandbox\//.test(read(file))) expect(introduction).toMatch(/sandbox/i);
});

/** A reader with an empty CRM and a new shell. */
async function startReading() {
  const crm = await createCrm({ requestsPerMinute: 6_000, sandbox: true });
  const shell = openShell();
  const adapt = adaptTo(crm, await freePort());
  return {
    async follow(markdown: string): Promise<void> {
      for (const { commands, shown } of readSteps(markdown)) {
        const given = commands.map(adapt).join('\n');
        const expected = new RegExp(`^${RegExp.escape(adapt(shown)).replaceAll('…', '.*')}$`);
        const check = async (): Promise<void> => expect(await shell.run(given), given).toMatch(expected);
        // What other services tell arrives a moment later.
        await (/ -(d|X) /.test(given) ? check() : eventually(check));
      }
    },
    variables: () => shell.run('declare -p GATEWAY CRM KEY URL PROVIDER; declare -f'),
    /** What applies to every later request. */
    settings: () =>
      Promise.all(
        [
          '/provider/yoga%40tour',
          '/provider/yoga%40tour/booking-rules',
          '/provider/yoga%40tour/staff',
          '/webhooks',
        ].map(async (address) => (await crm.get(address)).body),
      ),
    secondsAhead: async () =>
      (await crm.get<{ clock: { aheadSeconds: number } }>('/sandbox/clock')).body.clock.aheadSeconds,
    [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
  };
}

/** Puts the test's gateway, CRM and key in place of those of `npm start`, and names that no other CRM has. */
function adaptTo(crm: TestCrm, port: number): (text: string) => string {
  const settings = { GATEWAY: inject('stack').gateway, CRM: crm.crmId, KEY: crm.key };
  const mara = unique('mara');
  return (text) =>
    Object.entries(settings)
      .reduce((result, [name, value]) => result.replaceAll(new RegExp(`^${name}=.*`, 'gm'), `${name}=${value}`), text)
      .replaceAll('/crms/demo/', `/crms/${crm.crmId}/`)
      .replaceAll(/\bmara\b(?!@tour)/g, mara)
      .replaceAll(/127\.0\.0\.1:3000\b/g, `127.0.0.1:${port}`)
      .replaceAll('listen(3000,', `listen(${port},`);
}

it('the guide about errors says what to do for every code', () => {
  const codes = [...read('../interface.md').matchAll(/^\| \d{3} \| `([a-z_.]+)` \|/gm)].map(([, code]) => code!);
  expect(codes.length).toBeGreaterThan(60);
  const guide = read('errors.md');
  expect(codes.filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
});

it('every link in a guide leads somewhere', () => {
  const links = globSync('*.md', { cwd: folder }).flatMap((file) => {
    return [...read(file).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)].map(
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
