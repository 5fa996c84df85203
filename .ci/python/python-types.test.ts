/**
 * The API document can be turned into types of another language than TypeScript: they compile, and are those of the
 * bodies in the document.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { loadPyodide } from 'pyodide';
import { createAppUnderTest } from '../../apps/gateway/test/app-under-test.ts';
import { bodiesOf, type Document, generatePythonTypes, type JsonBody, operationsOf } from './generate-types.ts';

const run = promisify(execFile);
const pyright = join(import.meta.dirname, 'node_modules/pyright/index.js');

/** What the type checker has to report: it reports each comment, too, that suppresses nothing. */
const mistakes = `
from scheduling import CreateUserRequest, CreateUserResponse201, Slot

CreateUserRequest(reference="mara@crm", username="mara", last_name="Blum")  # pyright: ignore[reportCallIssue]
CreateUserRequest(reference="mara@crm", username="mara", last_name="Blum", email=1)  # pyright: ignore[reportArgumentType]

def read(created: CreateUserResponse201, slot: Slot) -> int:
    print(created.user.surname)  # pyright: ignore[reportAttributeAccessIssue]
    return slot.start  # pyright: ignore[reportReturnType]
`;

/**
 * Reads each example as its type and writes it again. The names of the functions are those of the types, in snake case.
 */
const writeAgain = `
import json
import scheduling

functions = {name.replace("_", ""): function for name, function in vars(scheduling).items()}

def write_again(name, examples):
    read, write = functions[name.lower() + "fromdict"], functions[name.lower() + "todict"]
    return [write(read(example)) for example in examples]

json.dumps([write_again(*each) for each in json.loads(bodies)])
`;

let document: Document;
let bodies: JsonBody[];
let code: string;
let folder: string;
before(async () => {
  await using gateway = await createAppUnderTest();
  document = JSON.parse(gateway.document) as Document;
  bodies = operationsOf(document).flatMap((operation) => bodiesOf(document, operation));
  code = await generatePythonTypes(document, bodies);
  folder = await mkdtemp(join(tmpdir(), 'python-types-'));
  await writeFile(join(folder, 'scheduling.py'), code);
  await writeFile(join(folder, 'mistakes.py'), mistakes);
  await writeFile(
    join(folder, 'pyrightconfig.json'),
    JSON.stringify({ typeCheckingMode: 'standard', reportUnnecessaryTypeIgnoreComment: 'error' }),
  );
});
after(() => rm(folder, { recursive: true }));

describe('types for Python', () => {
  it('are generated for the bodies of all operations', () => {
    const silent = operationsOf(document).filter((operation) => bodiesOf(document, operation).length === 0);
    assert.deepEqual(
      silent.map(({ operationId }) => operationId).toSorted(),
      [
        'deleteAccount',
        'deleteBlock',
        'deleteCalendar',
        'deleteInvitation',
        'deleteProvider',
        'deleteTimeslot',
        'deleteUser',
        'deleteWebhook',
        'removeStaff',
        'requestVerification',
      ],
      'the operations that neither take nor return JSON',
    );
    assert.ok(operationsOf(document).length > 45);
    const functions = new Set(
      [...code.matchAll(/^def (\w+)_from_dict\(/gm)].map(([, name]) => name!.replaceAll('_', '')),
    );
    assert.deepEqual(
      bodies.map(({ name }) => name).filter((name) => !functions.has(name.toLowerCase())),
      [],
    );
  });

  it('have names of the document, because quicktype would begin those that it has to invent with an adjective', () => {
    const classes = [...code.matchAll(/^class (\w+)/gm)].map(([, name]) => name!);
    assert.ok(classes.length > 90);
    assert.deepEqual(
      classes.filter((name) =>
        /^(Purple|Fluffy|Tentacled|Sticky|Indigo|Indecent|Hilarious|Ambitious|Cunning|Magenta)/.test(name),
      ),
      [],
    );
  });

  it('compile, and the checker finds mistakes in a program that uses them', async () => {
    const { stdout } = await run('node', [pyright, '--project', folder, '--outputjson']).catch(
      (error: { stdout: string }) => error,
    );
    const { generalDiagnostics, summary } = JSON.parse(stdout) as {
      generalDiagnostics: { file: string; message: string; range: unknown }[];
      summary: Record<string, number>;
    };
    assert.deepEqual(generalDiagnostics, []);
    assert.equal(summary['filesAnalyzed'], 2);
  });

  it('read every example of the document and write it again', async () => {
    const python = await loadPyodide();
    python.FS.writeFile('scheduling.py', code);
    python.globals.set('bodies', JSON.stringify(bodies.map(({ name, examples }) => [name, examples])));
    const written = JSON.parse(
      python.runPython(`import sys; sys.path.insert(0, ".")\n${writeAgain}`) as string,
    ) as unknown[][];
    for (const [index, { name, examples }] of bodies.entries()) {
      assert.ok(examples.length > 0, `${name} has no example`);
      const compared = name.endsWith('Request') ? withoutNulls : (body: unknown) => body;
      assert.deepEqual(written[index]!.map(compared), examples.map(compared), name);
    }
  });
});

/**
 * A class of quicktype does not distinguish an optional field that is null from one that is absent: in a request it
 * leaves both out.
 */
function withoutNulls(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body, (_key, value: unknown) => value ?? undefined));
}
