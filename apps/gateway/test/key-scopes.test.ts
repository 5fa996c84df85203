import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { codesByOperation, createAppUnderTest, type Document } from './app-under-test.ts';
import { interfaceDocument } from './error-table.ts';
import { scopeTable, scopeTableSection } from './scope-table.ts';

await using gateway = await createAppUnderTest();
const document = JSON.parse(gateway.document) as Document;
const operations = Object.values(document.paths).flatMap((each) =>
  Object.entries(each).map(([method, operation]) => ({ method, ...operation, scope: operation['x-required-scope'] })),
);
const idsOf = (which: (operation: (typeof operations)[number]) => boolean): string[] =>
  operations
    .filter(which)
    .map(({ operationId }) => operationId)
    .sort();

it('a key that may only read changes nothing, and gets nothing that works without it', () => {
  expect(idsOf(({ method, scope }) => method !== 'get' && scope === 'read')).toEqual([]);
  expect(idsOf(({ method, scope }) => method === 'get' && scope !== 'read')).toEqual([
    'getParticipationLink',
    'listInvitations',
    'listSandboxMails',
  ]);
});

it('a key that may book changes bookings, customers and what belongs to them, and nothing else', () => {
  expect(idsOf(({ scope }) => scope === 'book')).toEqual([
    'changeBooking',
    'createBooking',
    'createCustomer',
    'createInvitation',
    'createParticipation',
    'deleteCustomer',
    'deleteInvitation',
    'getParticipationLink',
    'listInvitations',
    'resendMail',
    'updateCustomer',
    'updateParticipation',
  ]);
});

it('the API document names the scope of each operation, and the code of the refusal if there is one', () => {
  const codes = codesByOperation(document);
  for (const { operationId, description, scope } of operations) {
    expect(['read', 'book', 'all'], operationId).toContain(scope);
    expect(description, operationId).toMatch(new RegExp(`\n\nNeeds the scope \`${scope}\`\\.$`));
    expect(codes.get(operationId)!.includes('key.scope_insufficient'), operationId).toBe(scope !== 'read');
  }
});

it('docs/interface.md lists the scope of each operation (else: node apps/gateway/write-scope-table.ts)', async () => {
  expect(scopeTableSection.read(readFileSync(interfaceDocument, 'utf8'))).toBe(await scopeTable());
});
