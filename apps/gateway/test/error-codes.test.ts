import { type DomainCategory, type ErrorCode, errorCodes } from '@scheduling/errors';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestErrors } from '../src/request-errors.ts';
import { codesByOperation, createAppUnderTest, type Document } from './app-under-test.ts';
import { errorTable, errorTableSection, interfaceDocument } from './error-table.ts';

/** In the form that the comments of the RPCs use (ADR 4). */
const grpcStatus: Record<DomainCategory, string> = {
  invalid: 'INVALID_ARGUMENT',
  unauthenticated: 'UNAUTHENTICATED',
  forbidden: 'PERMISSION_DENIED',
  not_found: 'NOT_FOUND',
  conflict: 'FAILED_PRECONDITION',
  gone: 'OUT_OF_RANGE',
  unprocessable: 'ALREADY_EXISTS',
  limited: 'RESOURCE_EXHAUSTED',
  unavailable: 'UNAVAILABLE',
};

const protoFolder = join(import.meta.dirname, '../../../proto');

/** Every code that a comment names, with the status that precedes it. */
const commented = globSync('**/*.proto', { cwd: protoFolder }).flatMap((file) =>
  readComments(readFileSync(join(protoFolder, file), 'utf8')),
);

interface Comment {
  /** Undefined for a comment on anything but an RPC. */
  rpc: string | undefined;
  status: string;
  code: string;
}

function readComments(proto: string): Comment[] {
  const comments = proto.matchAll(/((?:^[ \t]*\/\/.*\n)+)(?:[ \t]*rpc (\w+))?/gm);
  return [...comments].flatMap(([, comment = '', rpc]) => {
    const text = comment.replaceAll(/\s*\/\/\s*/g, ' ');
    const refusals = [...text.matchAll(/\b([A-Z_]{5,}) \(([^)]*)\)/g)];
    return refusals.flatMap(([, status = '', codes = '']) =>
      [...codes.matchAll(/\b[a-z_]+\.[a-z_]+\b/g)].map(([code]) => ({ rpc, status, code })),
    );
  });
}

describe('the comments of the RPCs', () => {
  it('name only existing codes, each with the status of its category', () => {
    expect(commented.length).toBeGreaterThan(50);
    const categoryOf = (code: string): DomainCategory | undefined => errorCodes[code as ErrorCode]?.category;
    expect(
      commented.filter(
        ({ code, status }) => categoryOf(code) === undefined || grpcStatus[categoryOf(code)!] !== status,
      ),
    ).toEqual([]);
  });

  it('name every code except those of the gateway itself, those of any RPC, and those for busy or unavailable', () => {
    const named = new Set(commented.map(({ code }) => code));
    const unnamed = Object.entries(errorCodes).filter(
      ([code, { category }]) => !named.has(code) && category !== 'unavailable',
    );
    expect(unnamed.map(([code]) => code).sort()).toEqual([
      'caller.forbidden',
      'crm.forbidden',
      'key.missing',
      'text.invalid',
    ]);
  });
});

describe('the codes that the API document lists for an operation', () => {
  const sharedByAll = new Set([
    ...Object.keys(requestErrors),
    'key.missing',
    'key.invalid',
    'crm.forbidden',
    'service.unavailable',
    'idempotency_key.in_flight',
    'idempotency_key.reused',
  ]);
  /** The RPCs of an operation that has a different name, or uses more than one. */
  const rpcsOf: Record<string, string[]> = {
    createAppointment: ['CreateAppointment', 'CreateSeries'],
    requestErasure: ['EraseAddress'],
    getErasure: ['GetAddressErasure'],
    // Answered with what the check of the key has found out.
    getCrm: [],
    // Its comment refers to that of the other.
    createBooking: ['BookSlot'],
    deleteAppointmentsWithoutNotification: ['DeleteAppointments'],
  };
  /**
   * Codes that never reach a client: interface 4.4 answers 204, and the gateway checks that one of the two is named.
   */
  const keptBack: Record<string, string[]> = {
    getCustomer: ['customer.not_found'],
    deleteAppointmentsWithoutNotification: ['appointment.invalid'],
  };

  it('are those of the RPCs that it calls', async () => {
    await using gateway = await createAppUnderTest();
    const operations = codesByOperation(JSON.parse(gateway.document) as Document);
    expect(operations.size).toBeGreaterThan(20);
    const listed = Object.fromEntries(
      [...operations].map(([id, codes]) => [id, codes.filter((code) => !sharedByAll.has(code)).sort()]),
    );
    const expected = Object.fromEntries(
      [...operations.keys()].map((id) => {
        const rpcs = rpcsOf[id] ?? [id.charAt(0).toUpperCase() + id.slice(1)];
        const codes = commented
          .filter(({ rpc, code }) => rpc !== undefined && rpcs.includes(rpc) && !keptBack[id]?.includes(code))
          .map(({ code }) => code);
        return [id, [...new Set(codes)].sort()];
      }),
    );
    expect(listed).toEqual(expected);
  });

  it('use only service.unavailable for whatever is unavailable', async () => {
    await using gateway = await createAppUnderTest();
    const codes = new Set([...codesByOperation(JSON.parse(gateway.document) as Document).values()].flat());
    expect([...codes].filter((code) => errorCodes[code as ErrorCode]?.category === 'unavailable')).toEqual([
      'service.unavailable',
    ]);
  });
});

it('docs/interface.md lists every code that clients can get (else: node apps/gateway/write-error-table.ts)', async () => {
  expect(errorTableSection.read(readFileSync(interfaceDocument, 'utf8'))).toBe(await errorTable());
});
