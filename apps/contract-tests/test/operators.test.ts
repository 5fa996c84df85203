import { isUnimplemented } from '@scheduling/rpc';
import { randomUUID } from 'node:crypto';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { expect, inject, it } from 'vitest';
import { createAdminClient } from '@scheduling/stack/admin-client';
import { runAdmin, runPrinted } from '@scheduling/test-stack/command';
import { createCrm, unique } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';

it('operators are served on a separate port only', async () => {
  const { admin, services } = inject('stack');
  using separate = createAdminClient(admin.identity);
  expect((await separate.listCrms({})).crms.length).toBeGreaterThan(0);
  using shared = createAdminClient(services.identity);
  await expect(shared.listCrms({})).rejects.toSatisfy(isUnimplemented);
  await expect(shared.createKey({ crmId: 'demo' })).rejects.toSatisfy(isUnimplemented);
  const { code, output } = await runAdmin({ IDENTITY_ADDRESS: services.identity }, 'crm', 'list');
  expect({ code, output }).toEqual({
    code: 1,
    output: expect.stringMatching(/^There is no such RPC at this address\. .* ADMIN_PORT/) as string,
  });
});

it('operators give a CRM a logo, a colour that can carry white text, an imprint of several lines and a privacy notice', async () => {
  const environment = { IDENTITY_ADDRESS: inject('stack').admin.identity };
  const crmId = unique('crm');
  const brand = (colour: string) => [
    '--logo-url',
    'https://cdn.example/logo.png',
    '--colour',
    colour,
    '--imprint',
    'Acme GmbH\nBerlin',
    '--privacy-url',
    'https://acme.example/privacy',
  ];
  const bright = await runAdmin(environment, 'crm', 'create', crmId, ...brand('#ffcc00'));
  expect(bright).toEqual({
    code: 1,
    output: expect.stringMatching(/colour.*must be darker: .* contrast of 1\.51, and needs 4\.5/) as string,
  });
  expect(await runAdmin(environment, 'crm', 'create', crmId, ...brand('#0B7A4B'))).toMatchObject({ code: 0 });
  const { output } = await runAdmin(environment, 'crm', 'show', crmId);
  expect(output).toMatch(
    /^logo +https:\/\/cdn\.example\/logo\.png\ncolour +#0b7a4b\nimprint +Acme GmbH\n +Berlin\nprivacy notice +https:\/\/acme\.example\/privacy$/m,
  );
  expect(await runAdmin(environment, 'crm', 'show', unique('crm'))).toEqual({
    code: 1,
    output: expect.stringMatching(/^There is no CRM /) as string,
  });
});

it('operators give a CRM a retention period, and take it away', async () => {
  const environment = { IDENTITY_ADDRESS: inject('stack').admin.identity };
  const crmId = unique('crm');
  const change = (command: string, days: string) =>
    runAdmin(environment, 'crm', command, crmId, '--anonymise-after-days', days);
  const listed = async () =>
    (await runAdmin(environment, 'crm', 'list')).output
      .split('\n')
      .find((line) => line.startsWith(crmId))!
      .trim();
  expect(await change('create', '36501')).toEqual({
    code: 1,
    output: expect.stringContaining('anonymiseAfterDays') as string,
  });
  expect(await change('create', '30')).toMatchObject({ code: 0 });
  expect(await listed()).toMatch(/ 30 days$/);
  expect(await change('update', '0')).toEqual({ code: 0, output: expect.stringContaining('within an hour') as string });
  expect(await listed()).toMatch(/ -$/);
});

it('operators create the first key with the commands of docs/installation.md', async () => {
  const { admin, gateway } = inject('stack');
  const crmId = unique('crm');
  const here = printedCommands('first key')
    .replace('127.0.0.1:50052', admin.identity)
    .replaceAll(/(create) acme\b/g, `$1 ${crmId}`);
  const { code, output } = await runPrinted({}, here);
  expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining(`Created CRM ${crmId}`) as string });
  const key = /^sk_\S+$/m.exec(output)![0];
  const url = `${gateway}/crms/${crmId}/user/nobody%40acme`;
  expect((await fetch(url, { headers: { 'X-SERVICE-CLIENT-ID': key } })).status).toBe(404);
});

it('operators create keys with a scope, and see it in the list', async () => {
  const { admin, gateway } = inject('stack');
  const environment = { IDENTITY_ADDRESS: admin.identity };
  const { crmId } = await createCrm();
  const prefixes: string[] = [];
  for (const [scope, status] of [
    ['read', 403],
    ['book', 403],
    ['all', 400],
  ] as const) {
    const { code, output } = await runAdmin(environment, 'key', 'create', crmId, '--scope', scope);
    const [key = ''] = /^sk_\S+$/m.exec(output) ?? [];
    expect({ code, key }).toMatchObject({ code: 0, key: expect.stringMatching(/./) as string });
    const headers = { 'X-SERVICE-CLIENT-ID': key };
    expect((await fetch(`${gateway}/crms/${crmId}/user`, { method: 'POST', headers })).status).toBe(status);
    prefixes.push(key.slice(0, 12));
  }
  const { output: list } = await runAdmin(environment, 'key', 'list', crmId);
  expect(list).toMatch(/^prefix +state +scope +created /);
  for (const [index, scope] of ['read', 'book', 'all'].entries())
    expect(list).toMatch(new RegExp(`^${prefixes[index]} +active +${scope} `, 'm'));
  expect(await runAdmin(environment, 'key', 'create', crmId, '--scope', 'write')).toEqual({
    code: 1,
    output: expect.stringMatching(/'write' is invalid\. Allowed choices are read, book, all\./) as string,
  });
  using client = createAdminClient(admin.identity);
  expect((await client.listKeys({ crmId })).apiKeys).toHaveLength(4);
});

it('operators find and give up a dead letter with the commands of docs/operations.md', async () => {
  const { admin } = inject('stack');
  const [CONSUMER, EVENT] = ['calendar-identity-provider-changed', randomUUID()];
  const addresses = Object.fromEntries(
    Object.entries(admin).map(([service, address]) => [`${service.toUpperCase()}_ADDRESS`, address]),
  );
  await query(
    'calendar',
    `INSERT INTO dead_letter (consumer, event_id, subject, payload, request_id, error, attempts)
     VALUES ($1, $2, 'scheduling.identity.v1.provider-changed', '', 'r', 'Error: poison', 10)`,
    [CONSUMER, EVENT],
  );
  const shown = await runPrinted({ ...addresses, CONSUMER, EVENT }, printedCommands('dead letters'));
  expect(shown).toEqual({
    code: 0,
    output: expect.stringMatching(
      new RegExp(
        `^${CONSUMER} +${EVENT} .* 10 +Error: poison$[^]*^consumer +${CONSUMER}$[^]*^error +Error: poison$`,
        'm',
      ),
    ) as string,
  });
  expect(await runAdmin(addresses, 'dead-letters', 'drop', CONSUMER, EVENT)).toMatchObject({ code: 0 });
  expect((await runPrinted({ ...addresses, CONSUMER, EVENT }, printedCommands('dead letters'))).code).toBe(1);
});
