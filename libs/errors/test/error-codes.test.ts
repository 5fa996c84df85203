import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { calendarErrors } from '../src/calendar-errors.ts';
import { customerErrors } from '../src/customer-errors.ts';
import { errorCodes } from '../src/error-codes.ts';
import { identityErrors } from '../src/identity-errors.ts';
import { notificationErrors } from '../src/notification-errors.ts';
import { platformErrors } from '../src/platform-errors.ts';
import { webhookErrors } from '../src/webhook-errors.ts';

const root = join(import.meta.dirname, '../../..');

/**
 * The code that raises errors: without the tables themselves, and without the routes' lists of documented error codes.
 */
function refusingCode(): string {
  const files = globSync(['apps/*/src/*/*.sql', 'apps/*/src/**/*.ts', 'libs/*/src/**/*.ts'], { cwd: root }).filter(
    (file) => !/^libs\/(?:errors|contracts)\/|\.test\.ts$|^apps\/gateway\/src\/(?:routes\/|schemas\.ts)/.test(file),
  );
  expect(files.length).toBeGreaterThan(100);
  return files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
}

it('every code in the tables is used', () => {
  const text = refusingCode();
  expect(Object.keys(errorCodes).filter((code) => !text.includes(`'${code}'`))).toEqual([]);
});

it('every code that SQL functions answer with is in a table', () => {
  const files = globSync('apps/*/src/*/*.sql', { cwd: root });
  const codes = files.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .matchAll(/error_answer\('([^']*)'/g)
      .map(([, code]) => code!)
      .toArray(),
  );
  expect(codes.length).toBeGreaterThan(10);
  expect(codes.filter((code) => !(code in errorCodes))).toEqual([]);
});

it('no code is in more than one table', () => {
  const tables = [identityErrors, calendarErrors, customerErrors, notificationErrors, platformErrors, webhookErrors];
  expect(Object.keys(errorCodes)).toHaveLength(tables.reduce((sum, table) => sum + Object.keys(table).length, 0));
});

it('every code has the form <entity>.<reason>', () => {
  expect(Object.keys(errorCodes).filter((code) => !/^[a-z_]+\.[a-z_]+$/.test(code))).toEqual([]);
});
