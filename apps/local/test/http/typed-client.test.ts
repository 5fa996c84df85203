import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { apiDocument } from './client.ts';
import { createCrm, createPractice, unique } from './crm.ts';

/** Code that an integrator writes against types generated from the document: without optional parameters, and with references unencoded. */
const program = `
import createClient from 'openapi-fetch';
import type { paths } from './api.ts';

const [baseUrl = '', key = '', crmId = '', provider = '', customer = '', reference = ''] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { 'X-SERVICE-CLIENT-ID': key } });
const path = { crmId, providerRef: provider };
const times = { start: '2031-03-03T09:00', end: '2031-03-03T10:00' };

const statuses = [
  await client.POST('/crms/{crmId}/provider/{providerRef}/appointments', {
    params: { path },
    body: { reference, ...times, capacity: 1, resourceReference: reference, productReference: reference },
  }),
  await client.GET('/crms/{crmId}/provider/{providerRef}/appointments', { params: { path } }),
  await client.GET('/crms/{crmId}/provider/{providerRef}/resource/{resourceRef}/timeslots', {
    params: { path: { ...path, resourceRef: reference }, query: { from: times.start, to: times.end } },
  }),
  await client.POST('/crms/{crmId}/provider/{providerRef}/participations', {
    params: { path },
    body: { reference, appointmentReference: reference, customerReference: customer, state: 'BOOKED' },
  }),
  await client.POST('/crms/{crmId}/provider/{providerRef}/participations/{participationRef}', {
    params: { path: { ...path, participationRef: reference } },
    body: { state: 'CANCELED' },
  }),
  await client.DELETE('/crms/{crmId}/provider/{providerRef}/appointments', { params: { path }, body: { appointmentReference: reference } }),
  await client.PUT('/crms/{crmId}/provider/{providerRef}/customers/{customerRef}', {
    params: { path: { ...path, customerRef: customer } },
    body: { customerReference: reference },
  }),
  await client.GET('/crms/{crmId}/provider/{providerRef}/customers/{customerRef}', { params: { path: { ...path, customerRef: reference } } }),
  await client.DELETE('/crms/{crmId}/provider/{providerRef}/customers/{customerRef}', { params: { path: { ...path, customerRef: reference } } }),
].map(({ response }) => response.status);
console.log(JSON.stringify(statuses));

export const mistakes = [
  // @ts-expect-error -- required
  () => client.GET('/crms/{crmId}/provider/{providerRef}/resource/{resourceRef}/timeslots', { params: { path: { ...path, resourceRef: 'r' } } }),
  // @ts-expect-error -- misspelled
  () => client.GET('/crms/{crmId}/provider/{providerRef}/appointments', { params: { path, query: { includeArchive: true } } }),
];
`;

const run = promisify(execFile);
const modules = join(import.meta.dirname, '../../../../node_modules');
const project = await mkdtemp(join(tmpdir(), 'typed-client-'));

beforeAll(async () => {
  const { text } = await apiDocument();
  await symlink(modules, join(project, 'node_modules'));
  await writeFile(join(project, 'api.ts'), astToString(await openapiTypescript(text)));
  await writeFile(join(project, 'program.ts'), program);
  await writeFile(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ extends: join(modules, '../tsconfig.base.json'), compilerOptions: { types: ['node'] }, include: ['*.ts'] }),
  );
});
afterAll(() => rm(project, { recursive: true }));

it('compiles without the optional parameters', async () => {
  const { stdout } = await run(join(modules, '.bin/tsc'), ['--project', project]).catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
});

it.each(['y@t', 'a/b c@t', '100%25ü@t'])('finds the resource with the reference %s', async (name) => {
  const crm = await createCrm();
  const practice = await createPractice(crm);
  const reference = `${unique('r')}${name}`;
  const { stdout } = await run(process.execPath, [
    join(project, 'program.ts'),
    inject('stack').gateway,
    crm.key,
    crm.crmId,
    practice.provider,
    practice.customer,
    reference,
  ]);
  expect(JSON.parse(stdout)).toEqual([201, 200, 200, 201, 200, 200, 200, 200, 204]);
});
