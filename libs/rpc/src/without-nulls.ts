/**
 * A row as the fields of a message, where null becomes undefined. Columns that the message does not have are not sent.
 */
export function withoutNulls<Row extends object>(row: Row): WithoutNulls<Row> {
  const fields = { ...row } as Record<string, unknown>;
  for (const name of Object.keys(fields)) fields[name] ??= undefined;
  return fields as WithoutNulls<Row>;
}

type WithoutNulls<Row> = {
  [Name in keyof Row]: null extends Row[Name] ? NonNullable<Row[Name]> | undefined : Row[Name];
};
