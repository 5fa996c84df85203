/** The names of an enum's values in the code, without the two placeholders (unspecified and unrecognized). */
export type EnumName<Enum> = Exclude<keyof Enum & string, 'UNSPECIFIED' | 'UNRECOGNIZED'>;

/** In the order of the proto file. */
export function enumNames<Enum extends Record<string, string>>(values: Enum): EnumName<Enum>[] {
  return Object.keys(values).filter((name) => name !== 'UNSPECIFIED' && name !== 'UNRECOGNIZED') as EnumName<Enum>[];
}

/** The name of a received value; undefined if it is not set, or comes from a newer version. */
export function enumName<Enum extends Record<string, string>>(
  values: Enum,
  value: Enum[keyof Enum],
): EnumName<Enum> | undefined {
  return enumNames(values).find((name) => values[name] === value);
}
