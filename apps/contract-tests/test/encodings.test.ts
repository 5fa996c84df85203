import { beforeAll, describe, expect, inject, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import { examplesOf, type Place } from '@scheduling/test-stack/api-document';
import { apiDocument, type Problem } from '@scheduling/test-stack/client';
import { createCrm, createPractice, type Practice, type TestCrm } from '@scheduling/test-stack/crm';

/**
 * Text that is decoded with replacement characters makes two names the same: whatever is not UTF-8 is rejected
 * (interface 1, Bodies and Paths).
 */

const { places, document } = await apiDocument();
const json = 'application/json';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

/** A body with bytes of its own, and the code of the response. */
async function send(
  body: Uint8Array<ArrayBuffer>,
  contentType = json,
): Promise<{ status: number; code?: string; text: string }> {
  const headers = { 'x-service-client-id': crm.key, 'content-type': contentType };
  const response = await fetch(`${inject('stack').gateway}/crms/${crm.crmId}${practice.at}/customers`, {
    method: 'POST',
    headers,
    body,
  });
  const text = await response.text();
  return { status: response.status, code: (JSON.parse(text) as Problem).code, text };
}

function customer(customerReference: string, userName = 'Name'): string {
  return JSON.stringify({ customerReference, providerReference: practice.provider, userName });
}

const bytes = (text: string, encoding: BufferEncoding = 'utf8'): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(Buffer.from(text, encoding));

/** The body, with these bytes where the reference has a tilde. */
function withBytes(...inserted: number[]): Uint8Array<ArrayBuffer> {
  const [before = '', after = ''] = customer('a~b').split('~');
  return Uint8Array.from([...bytes(before), ...inserted, ...bytes(after)]);
}

const malformed = { status: 400, code: 'request.malformed' };
const unsupported = { status: 415, code: 'request.unsupported_media_type' };

describe('a body that is not UTF-8', () => {
  it('does not make two customers one', async () => {
    for (const name of ['Mü1', 'Mö1'])
      expect(await send(bytes(customer(name, name), 'latin1'))).toMatchObject(malformed);
    expect((await crm.get<unknown[]>(`${practice.at}/customers`)).body).toHaveLength(1);
  });

  it.each([
    ['a byte of Latin-1', [0xfc]],
    ['a byte that UTF-8 never has', [0xff]],
    ['a continuation without a beginning', [0x80]],
    ['a character that is too long', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a pair of surrogates', [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
    ['a character above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['half a character', [0xf0, 0x9f, 0xa6]],
    ['a zero', [0x00]],
  ])('because it contains %s is rejected', async (_, inserted) => {
    expect(await send(withBytes(...inserted))).toMatchObject(malformed);
  });

  it('because it ends within a character is rejected', async () => {
    expect(await send(bytes(`${customer('a')}\u{1f98a}`).subarray(0, -1))).toMatchObject(malformed);
  });

  it('because it is UTF-16 is rejected', async () => {
    expect(await send(bytes(`\ufeff${customer('a')}`, 'utf16le'))).toMatchObject(malformed);
    expect(await send(bytes(customer('a'), 'utf16le'))).toMatchObject(malformed);
  });
});

describe('a body that says which charset it has', () => {
  it.each(['utf-8', 'UTF-8', '"utf-8"', '"Utf-8"', 'utf8'])('%s is accepted', async (charset) => {
    expect(await send(bytes(customer(`ü ${charset}`)), `${json}; charset=${charset}`)).toMatchObject({ status: 201 });
  });

  it.each([
    'iso-8859-1',
    'ISO-8859-15',
    '"latin1"',
    'windows-1252',
    'utf-16',
    'utf-16le',
    'us-ascii',
    'utf-7',
    'unheard-of',
    'utf-8-sig',
  ])('%s is rejected', async (charset) => {
    expect(await send(bytes(customer('plain')), `${json}; charset=${charset}`)).toMatchObject(unsupported);
    expect(await send(bytes(customer('plain')), `${json};format=flowed;Charset=${charset}`)).toMatchObject(unsupported);
  });

  it.each([' ;charset=utf-8', ';charset = utf-8', ';', '; charset=', '; version=1', '; charset=utf-8; charset=UTF-8'])(
    '%s is accepted',
    async (parameters) => {
      expect(await send(bytes(customer(`ü${parameters}`)), json + parameters)).toMatchObject({ status: 201 });
    },
  );

  it('twice is rejected if one of them is another one', async () => {
    expect(await send(bytes(customer('plain')), `${json}; charset=utf-8; charset=iso-8859-1`)).toMatchObject(
      unsupported,
    );
  });

  it('is accepted without a body, whatever it says', async () => {
    const headers = { 'content-type': `${json}; charset=iso-8859-1` };
    expect(await crm.delete('/user/nobody%40test', undefined, { headers })).toMatchObject({
      status: 404,
      body: { code: 'user.not_found' },
    });
  });
});

it('a byte order mark before a body is ignored', async () => {
  expect(await send(bytes(`\ufeff${customer('marked')}`))).toMatchObject({ status: 201 });
  expect(await send(bytes('\ufeff'))).toMatchObject(malformed);
});

it('replacement characters that a client sends are kept', async () => {
  expect(await send(bytes(customer('a\ufffdb', '\ufffd')))).toMatchObject({ status: 201 });
  expect(await crm.get(`${practice.at}/customers/a%EF%BF%BDb`)).toMatchObject({
    status: 200,
    body: { customer: { customerReference: 'a\ufffdb', userName: '\ufffd' } },
  });
});

describe.each(someOf(places))('$operation.operationId', (place) => {
  it('rejects a query that is not UTF-8', async () => {
    for (const query of ['x=%FC', '%FC=x', 'x=%C3', 'x=a&y=%ED%A0%80', 'x=%C0%AF', 'x=100%', 'x=%zz', 'x=%C3&%BC']) {
      expect(await crm.send(place.method.toUpperCase(), `${addressOf(place)}?${query}`), query).toMatchObject({
        status: 400,
        body: malformed,
      });
    }
  });

  it('rejects such a path', async () => {
    const names = [...place.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).filter((name) => name !== 'crmId');
    for (const name of names) {
      for (const value of ['%FC', '%C3', '%ED%A0%80', '%C0%AF', '100%', '%zz']) {
        const address = place.path
          .replace('/crms/{crmId}', '')
          .replace(`{${name}}`, value)
          .replaceAll(/\{\w+\}/g, 'x');
        const response = await fetch(`${inject('stack').gateway}/crms/${crm.crmId}${address}`, {
          method: place.method.toUpperCase(),
          headers: { 'x-service-client-id': crm.key },
        });
        expect(await response.json(), address).toMatchObject(malformed);
      }
    }
  });

  // JSON can name half of a character; UTF-8 cannot.
  it('rejects half a character in any text', async () => {
    for (const body of examplesOf(place.operation.requestBody?.content[json], document)) {
      for (const { pointer, changed } of withHalfCharacters(body)) {
        const {
          status,
          body: problem,
          text,
        } = await crm.send<Problem>(place.method.toUpperCase(), addressOf(place), changed);
        if (problem.code === 'account.reference_unparsable') continue;
        expect({ pointer, status, errors: problem.errors?.map((each) => each.pointer) }, text).toEqual({
          pointer,
          status: 400,
          errors: expect.arrayContaining([pointer]) as unknown,
        });
      }
    }
  });
});

/** A path of the operation, under the provider of the examples. */
function addressOf({ path }: Place): string {
  return path.replace('/crms/{crmId}', '').replaceAll(/\{\w+\}/g, 'workshop@acme');
}

/** A copy for each text in a body, with the text changed, and the pointer to it. */
function withHalfCharacters(body: unknown): { pointer: string; changed: unknown }[] {
  const pointers: string[] = [];
  const collect = (node: unknown, pointer: string): void => {
    if (typeof node === 'string') pointers.push(pointer);
    else if (typeof node === 'object' && node !== null)
      for (const [name, value] of Object.entries(node)) collect(value, `${pointer}/${name}`);
  };
  collect(body, '');
  return pointers.map((pointer) => ({ pointer, changed: replaceAt(body, pointer.split('/').slice(1)) }));
}

function replaceAt(node: unknown, [name, ...rest]: string[]): unknown {
  if (name === undefined) return `${String(node).slice(0, 1)}\ud800${String(node).slice(1)}`;
  if (Array.isArray(node))
    return node.map((each, index) => (String(index) === name ? replaceAt(each, rest) : (each as unknown)));
  return { ...(node as object), [name]: replaceAt((node as Record<string, unknown>)[name], rest) };
}
