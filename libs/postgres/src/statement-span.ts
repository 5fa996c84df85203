import { type ActiveSpan, inSpan } from '@scheduling/runtime';
import { DatabaseError } from 'pg';

/** What a span says about a statement: neither its text nor its values. */
export interface Statement {
  /** The name of the database. */
  namespace: string;
  operation: string;
  /** The function that it calls. */
  function?: string | undefined;
  /** The first table that it names. */
  table?: string | undefined;
  /** When its connection was requested, on the clock of `performance`; by default now. */
  startedMs?: number | undefined;
}

/** What may have a span. */
export interface Traced {
  span?: ActiveSpan | undefined;
}

/**
 * Runs a statement in a span of its own, from the request for a connection to the answer. Ask `isRecorded` before:
 * otherwise, nothing should be built for it.
 */
export function inStatementSpan<Result>(
  statement: Statement,
  work: (span: ActiveSpan) => Promise<Result>,
): Promise<Result> {
  const attributes = () => attributesOf(statement);
  return inSpan(summaryOf(statement), { kind: 'CLIENT', attributes, startedMs: statement.startedMs }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      if (error instanceof DatabaseError) span.set({ 'db.response.status_code': error.code });
      throw error;
    }
  });
}

/** Notes the end of the wait for a connection in the span of each call that is sent at this moment. */
export function noteSent(calls: readonly Traced[]): void {
  for (const { span } of calls) span?.note('sent', { 'db.operation.batch.size': calls.length });
}

/** The statement that calls a function. */
export function functionStatement(namespace: string, name: string): Statement {
  return { namespace, operation: 'SELECT', function: name };
}

const operationPattern = /^\s*(start transaction|\w+)/i;
/** The first table, or the function that stands for one. */
const sourcePattern = /\b(?:from|into|update)\s+"?(\w+)"?(\()?/i;
const calledPattern = /^\s*select\s+"?(\w+)"?\(/i;

/** Only names, which come from the code: values are parameters. */
export function describeStatement(namespace: string, sql: string): Statement {
  const operation = (operationPattern.exec(sql)?.[1] ?? '').toUpperCase();
  const [, source, isFunction] = sourcePattern.exec(sql) ?? [];
  if (source === undefined) return { namespace, operation, function: calledPattern.exec(sql)?.[1] };
  return isFunction === undefined
    ? { namespace, operation, table: source }
    : { namespace, operation, function: source };
}

function summaryOf({ operation, function: called, table }: Statement): string {
  const target = called ?? table;
  return target === undefined ? operation : `${operation} ${target}`;
}

/** As OpenTelemetry names them. */
function attributesOf(statement: Statement) {
  return {
    'db.system.name': 'postgresql',
    'db.namespace': statement.namespace,
    'db.operation.name': statement.operation,
    'db.query.summary': summaryOf(statement),
    'db.stored_procedure.name': statement.function,
    'db.collection.name': statement.table,
  };
}
