/** All errors in a process's environment, one line each. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';

  constructor(faults: string[]) {
    super(`Invalid configuration:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
  }
}

/**
 * Reads single variables and collects their errors. Each reader returns the default for an absent variable; without a
 * default the variable is required.
 */
export interface EnvironmentReader {
  text(name: string, fallback?: string): string;
  integer(name: string, range: { min: number; max: number }, fallback?: number): number;
  /** A decimal number, such as `0.1`. */
  number(name: string, range: { min: number; max: number }, fallback?: number): number;
  /** A TCP port; 0 picks a free one. */
  port(name: string, fallback?: number): number;
  oneOf<T extends string>(name: string, values: readonly T[], fallback?: T): T;
  /** A URL with one of the given protocols, such as `postgres:`. */
  url(name: string, protocols: readonly string[], fallback?: string): string;
  /**
   * Text of another form, which `allowed` describes. `faultsOf` returns what it must be or have instead, one text for
   * each fault, and does not repeat the value, which may contain a password.
   */
  checked(name: string, allowed: string, faultsOf: (raw: string) => string[], fallback?: string): string;
  /**
   * A required value of another form, which `allowed` describes; `parse` returns undefined if it has not this form. The
   * value is not repeated in the error.
   */
  parsed<T extends object>(name: string, allowed: string, parse: (raw: string) => T | undefined): T;
}

/** One variable that a configuration reads. */
export interface EnvironmentVariable {
  name: string;
  /** The allowed values, in words; undefined if any text is allowed. */
  allowed: string | undefined;
  /** Undefined: it is required. An empty string: it is optional. */
  fallback: string | undefined;
}

const recordings = new WeakMap<NodeJS.ProcessEnv, EnvironmentVariable[]>();

/** Every variable that a configuration reads, in order: for its documentation, and for checks of manifests. */
export function describeEnvironment(readConfig: (environment: NodeJS.ProcessEnv) => unknown): EnvironmentVariable[] {
  const [environment, variables]: [NodeJS.ProcessEnv, EnvironmentVariable[]] = [{}, []];
  recordings.set(environment, variables);
  try {
    readConfig(environment);
  } catch (error) {
    // Required variables are missing, but all have been read before this is thrown.
    if (!(error instanceof EnvironmentError)) throw error;
  }
  return variables;
}

/**
 * Builds a configuration from environment variables. Throws {@link EnvironmentError} with all errors, not only the
 * first.
 */
export function readEnvironment<T>(environment: NodeJS.ProcessEnv, build: (read: EnvironmentReader) => T): T {
  const faults: string[] = [];
  const config = build(createReader(environment, faults));
  if (faults.length > 0) throw new EnvironmentError(faults);
  return config;
}

function createReader(environment: NodeJS.ProcessEnv, faults: string[]): EnvironmentReader {
  /** Returns the stand-in for an invalid value: it is never used, because the errors are thrown. */
  function read<T>(
    name: string,
    fallback: T | undefined,
    standIn: T,
    parse: (raw: string) => T | string,
    allowed?: string,
  ): T {
    recordings
      .get(environment)
      ?.push({ name, allowed, fallback: fallback === undefined ? undefined : String(fallback) });
    const raw = environment[name];
    if (raw === undefined || raw === '') {
      if (fallback !== undefined) return fallback;
      faults.push(`${name} is required`);
      return standIn;
    }
    return parse(raw) as T;
  }

  const reader: EnvironmentReader = {
    text: (name, fallback) => read(name, fallback, '', (raw) => raw),
    integer: (name, { min, max }, fallback) => {
      const allowed = `a whole number from ${min} to ${max}`;
      const parse = (raw: string): number => {
        const value = Number(raw);
        if (!Number.isInteger(value) || value < min || value > max)
          faults.push(`${name} must be ${allowed}, not "${raw}"`);
        return value;
      };
      return read(name, fallback, min, parse, allowed);
    },
    number: (name, { min, max }, fallback) => {
      const allowed = `a number from ${min} to ${max}`;
      const parse = (raw: string): number => {
        const value = /^\d*\.?\d+$/.test(raw) ? Number(raw) : Number.NaN;
        if (!(value >= min && value <= max)) faults.push(`${name} must be ${allowed}, not "${raw}"`);
        return value;
      };
      return read(name, fallback, min, parse, allowed);
    },
    port: (name, fallback) => reader.integer(name, { min: 0, max: 65_535 }, fallback),
    oneOf: (name, values, fallback) => {
      const allowed = `one of ${values.join(', ')}`;
      const parse = (raw: string): string => {
        if (!values.some((value) => value === raw)) faults.push(`${name} must be ${allowed}, not "${raw}"`);
        return raw;
      };
      return read(name, fallback, values[0]!, parse, allowed);
    },
    url: (name, protocols, fallback) =>
      reader.checked(name, `a ${urlForm(protocols)}`, (raw) => faultsOfUrl(raw, protocols), fallback),
    checked: (name, allowed, faultsOf, fallback) => {
      const parse = (raw: string): string => {
        faults.push(...faultsOf(raw).map((fault) => `${name} must ${fault}`));
        return raw;
      };
      return read(name, fallback, '', parse, allowed);
    },
    parsed: <T extends object>(name: string, allowed: string, parse: (raw: string) => T | undefined): T => {
      const required = (raw: string): T => {
        const value = parse(raw);
        if (value === undefined) faults.push(`${name} must be ${allowed}`);
        return value as T;
      };
      // With a fault, nobody sees this value.
      return read<T>(name, undefined, undefined as unknown as T, required, allowed);
    },
  };
  return reader;
}

/** The form of a URL with one of these protocols, in words. */
export function urlForm(protocols: readonly string[]): string {
  return `URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`;
}

/** What the URL must be or have instead. The value is not repeated: it may contain a password. */
export function faultsOfUrl(raw: string, protocols: readonly string[]): string[] {
  const url = URL.parse(raw);
  if (url === null || !protocols.includes(url.protocol)) return [`be a ${urlForm(protocols)}`];
  return isEncoded(url.username) && isEncoded(url.password) ? [] : ['have its user and password percent-encoded'];
}

/** Whether every percent sign belongs to an encoded character. */
function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
