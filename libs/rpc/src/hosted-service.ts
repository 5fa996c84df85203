import type { Definition, MethodDefinition, RequestOf, ResponseOf } from './definition.ts';

/**
 * The implementation of each method of a service. A handler rejects with a DomainError for errors that the caller may
 * see.
 */
export type Handlers<D extends Definition> = {
  [Name in keyof D]: D[Name]['responseStream'] extends true ? StreamingHandler<D[Name]> : UnaryHandler<D[Name]>;
};

type UnaryHandler<M extends MethodDefinition> = (request: RequestOf<M>) => Promise<ResponseOf<M>>;
/** `signal` aborts when the caller disconnects or its deadline passes. */
type StreamingHandler<M extends MethodDefinition> = (
  request: RequestOf<M>,
  signal: AbortSignal,
) => AsyncIterable<ResponseOf<M>>;

/**
 * Who may call each method under mutual TLS: the names in their certificates. Without mutual TLS callers have no names,
 * and the table has no effect.
 */
export type Callers<D extends Definition> = { readonly [Name in keyof D]: readonly string[] };

/** A service definition with its callers and its handlers, type-checked against each other. */
export interface HostedService {
  definition: Definition;
  callers: Readonly<Record<string, readonly string[]>>;
  handlers: Record<string, (request: never, signal: AbortSignal) => unknown>;
  /**
   * The methods whose work in the database is a call of a SQL function, which shares a connection with others: more of
   * them may be in progress.
   */
  light?: readonly string[];
  /** Whose turn a call takes; by default that of the CRM that the request names, and none if it names none. */
  turnOf?: TurnOf;
}

/** Whose turn a call takes, and the part of a tenant's share that they have: all of it by default. */
export interface Turn {
  owner: string;
  part?: number;
}

export type TurnOf = (request: never) => Turn | undefined;

export function hostService<D extends Definition>(
  definition: D,
  callers: Callers<D>,
  handlers: Handlers<D>,
  options: {
    light?: readonly (keyof D & string)[];
    turnOf?: (request: RequestOf<D[keyof D]>) => Turn | undefined;
  } = {},
): HostedService {
  return { definition, callers, handlers, ...options };
}

/** The name in the certificate of the admin command. */
const operator = 'admin';

/** A service that only operators call. */
export function hostOperatorService<D extends Definition>(definition: D, handlers: Handlers<D>): HostedService {
  const callers = Object.fromEntries(Object.keys(definition).map((method) => [method, [operator]]));
  return { definition, callers, handlers };
}
