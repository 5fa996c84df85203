import { execFile } from 'node:child_process';
import { copyFile, mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot } from '@scheduling/stack';
import { describe, expect, inject, it } from 'vitest';
import { checkAfternoon } from '../afternoon.ts';

/** Those of which this machine has what is needed (.ci/run). */
const languages = process.env['GENERATED_CLIENTS']!.split(' ');
const timeoutMs = 600_000;

/** With openapi-generator-cli on the PATH. */
async function bash(command: string, folder: string): Promise<string> {
  const { gateway } = inject('stack');
  const env = { ...process.env, GATEWAY: gateway, SCHEDULING_URL: gateway };
  const options = { cwd: folder, env, timeout: timeoutMs, maxBuffer: 100_000_000 };
  const { stdout, stderr } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', command], options);
  return stdout + stderr;
}

/** Some systems do not distinguish the two files, and the later one replaces the other. */
function expectNoCollision(log: string): void {
  expect(log).toContain('openapi');
  expect(log).not.toContain('FILEPATH_COLLISION');
}

describe('who has nothing but the address of a gateway gets to a booking', () => {
  it.runIf(languages.includes('typescript'))(
    'in TypeScript, with the package that the gateway serves',
    async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'typescript-'));
      await writeFile(join(folder.path, 'package.json'), JSON.stringify({ type: 'module' }));
      await bash('npm install --no-audit --no-fund "$SCHEDULING_URL/client.tgz"', folder.path);
      await copyFile(
        join(folder.path, 'node_modules/@scheduling/client/examples/afternoon.ts'),
        join(folder.path, 'afternoon.ts'),
      );
      await checkAfternoon('node afternoon.ts', folder.path);
    },
    timeoutMs,
  );

  it.each(languages.filter((language) => ['java', 'go'].includes(language)))(
    'in %s, with the guide that the gateway serves',
    async (language) => {
      await using folder = await mkdtempDisposable(join(tmpdir(), `${language}-`));
      const guide = await (await fetch(`${inject('stack').gateway}/guides/${language}-client.md`)).text();
      const [, name, program] = /^```\w+\n\/\/ (\w+\.\w+)\n([^]*?)^```$/m.exec(guide)!;
      await writeFile(join(folder.path, name!), program!);
      const [prepare, play, ...others] = [...guide.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, commands]) => commands!);
      expect(others).toEqual([]);
      expectNoCollision(await bash(prepare!, folder.path));
      const files = await readdir(join(folder.path, 'scheduling'), { recursive: true });
      expect(files.filter((file) => /(Inner|InlineObject|AnyOf|OneOf|AllOf|\D\d)\.java$/.test(file))).toEqual([]);
      await checkAfternoon(play!, folder.path);
    },
    timeoutMs,
  );
});

/** A generated setter checks the pattern of its field: it has to be one that PHP can read, and allow all letters. */
const setNames = String.raw`
  spl_autoload_register(fn ($class) => require "scheduling-php/lib/" . strtr(substr($class, 11), "\\", "/") . ".php");
  (new Scheduling\Model\NewCustomer())->setCustomerReference("groß@crm")->setUserName("Ł. Groß €")->setNote("a\nb");`;

const checks = {
  php: `find scheduling-php -name "*.php" -print0 | xargs -0 -n 20 php -l && php -r '${setNames}'`,
  csharp: 'dotnet build scheduling-csharp/src/Scheduling',
};

it.each(Object.entries(checks).filter(([language]) => languages.includes(language)))(
  'the client for %s is valid',
  async (language, check) => {
    await using folder = await mkdtempDisposable(join(tmpdir(), `${language}-`));
    const guide = await readFile(join(repositoryRoot, 'docs/guides/README.md'), 'utf8');
    const [command] = new RegExp(`^openapi-generator-cli .* -g ${language} .*\n.*$`, 'm').exec(guide)!;
    expectNoCollision(await bash(command, folder.path));
    await bash(check, folder.path);
  },
  timeoutMs,
);
