import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { runAdmin, runCommand } from '@scheduling/test-stack/command';
import { operatorDocuments } from '@scheduling/testing/printed-commands';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'help-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('--help', () => {
  it.each([
    ['main', /^Usage: npm start -- \[options\]\n[^]*--fresh [^]*SCHEDULING_PORT [^]*SCHEDULING_DATA [^]*NATS_URL/],
    ['demo', /^Usage: npm run demo -- \[options\]\n\nBook an appointment step by step/],
    ['seed', /^Usage: npm run seed -- \[options\]\n\nFill the calendar of the CRM/],
    ['postman', /^Usage: npm run postman -- \[options\]\n\nWrite the API of the running stack/],
    ['mails', /^Usage: npm run mails -- \[options\]\n\nSend a sample of every mail/],
    ['webhook-inbox', /^Usage: npm run webhook-inbox -- \[options\]\n\nRegister a webhook of the demo CRM/],
  ] as const)('of %s shows the options and does nothing else', async (name, text) => {
    expect(await runCommand(name, { SCHEDULING_DATA: folder }, '--help')).toEqual({
      code: 0,
      output: expect.stringMatching(text) as string,
    });
    expect(await readdir(folder)).toEqual([]);
  });

  it('shows the defaults for "crm create" and none for "crm update"', async () => {
    const help = async (command: string): Promise<string> =>
      (await runAdmin({}, 'crm', command, '--help')).output.replaceAll(/\s+/g, ' ');
    expect(await help('create')).toContain(
      '--rate-limit <requests> requests per minute per key; 0 = unlimited (default: 6000) ',
    );
    const ofUpdate = await help('update');
    expect(ofUpdate).toContain('--rate-limit <requests> requests per minute per key; 0 = unlimited -');
    expect(ofUpdate).toContain(
      '--anonymise-after-days <days> days from the end of an appointment until its bookings are anonymised; 0 = no period of its own -',
    );
    expect(ofUpdate).not.toContain('default');
  });
});

describe('the admin command', () => {
  const text = operatorDocuments.map((file) => readFileSync(join(repositoryRoot, file), 'utf8')).join('\n');
  const groups = ['crm', 'key', 'dead-letters', 'erasures', 'provider'];
  const printed = [
    ...text.matchAll(
      /(?:npm run admin --|scheduling run .* admin|`(?=(?:crm|key|dead-letters) [a-z]+`)) ?([a-z][^`\n]*)/g,
    ),
  ].map(([, command]) => command!.split(' '));
  const names = [...new Set(printed.map(([name]) => name!))];

  it.each(names)('has what the documents for operators print of "%s"', async (name) => {
    const help = async (...command: string[]): Promise<string> => (await runAdmin({}, ...command, '--help')).output;
    const output = await help(name);
    expect(output).toContain(`Usage: npm run admin -- ${name} [options]`);
    for (const [, next = '', ...others] of printed.filter(([first]) => first === name)) {
      const isCommand = groups.includes(name) && /^[a-z]/.test(next);
      if (isCommand) expect(output).toMatch(new RegExp(`^ +${next} `, 'm'));
      const options = [next, ...others].filter((word) => word.startsWith('--'));
      const described = isCommand && options.length > 0 ? await help(name, next) : output;
      for (const option of options) expect(described).toMatch(new RegExp(`^ +${option} `, 'm'));
    }
  });

  it('is in the documents for operators', () => {
    expect(names).toEqual(expect.arrayContaining(['doctor', 'mails', 'audit', ...groups]));
  });
});

describe('an unknown argument', () => {
  it.each(['main', 'demo', 'mails', 'postman', 'seed', 'webhook-inbox'] as const)(
    'makes %s exit with code 2 and print its usage',
    async (name) => {
      expect(await runCommand(name, { SCHEDULING_DATA: folder }, '--frsh')).toEqual({
        code: 2,
        output: expect.stringMatching(/^error: unknown option '--frsh'\n[^]*\nUsage: npm /) as string,
      });
      expect(await readdir(folder)).toEqual([]);
    },
  );
});
