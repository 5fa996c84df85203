import type { ClientOf, Definition, MethodDefinition, RequestOf, ResponseOf, RpcClient } from '@scheduling/rpc';

/**
 * A client whose calls take what the address of an HTTP request names from its path: the CRM, the provider, and the
 * thing that the request is about. The first argument is the path, the second the rest of the message. Neither a body
 * nor a query can name anything else: the types reject it, and the path is applied last.
 *
 * ```ts
 * await participations.getParticipation(request.params); // crmId, providerRef, participationRef
 * ```
 *
 * Methods whose requests name no CRM are called as usual.
 */
export type AddressedClient<D extends Definition> = Disposable & {
  [Name in keyof D]: 'crmId' extends keyof RequestOf<D[Name]> ? AddressedCall<D[Name]> : ClientOf<D>[Name];
};

type AddressedCall<M extends MethodDefinition> = M['responseStream'] extends true
  ? <Path extends CrmPath>(
      path: Path & OnlyNamesOf<RequestOf<M>, Path>,
      fields: Fields<RequestOf<M>, Path>,
      signal?: AbortSignal,
    ) => AsyncIterable<ResponseOf<M>>
  : <Path extends CrmPath>(
      path: Path & OnlyNamesOf<RequestOf<M>, Path>,
      ...fields: Optional<Fields<RequestOf<M>, Path>>
    ) => Promise<ResponseOf<M>>;

/** The parameters in the path of a route: strings, by their names in the API. */
export interface CrmPath {
  crmId: string;
}

/** The name of a parameter in messages: `providerReference` for `providerRef`. */
type MessageName<Parameter> = Parameter extends `${infer Kind}Ref` ? `${Kind}Reference` : Parameter;
type Names<Path> = MessageName<keyof Path>;

/** Rejects what is no parameter of a path, and a parameter that the message does not have: it would be lost. */
type OnlyNamesOf<Message, Path> = {
  [Parameter in keyof Path]: Parameter extends `${string}Reference`
    ? never
    : MessageName<Parameter> extends keyof Message
      ? string
      : never;
};

/** What the path does not name. */
type Fields<Message, Path> = Omit<Message, Extract<Names<Path>, PropertyKey>> & {
  [Name in Extract<Names<Path>, PropertyKey>]?: never;
};

type Optional<Fields> = object extends Fields ? [fields?: Fields] : [fields: Fields];

export function addressed<D extends Definition>(definition: D, client: RpcClient<D>): AddressedClient<D> {
  const calls = Object.entries(definition).map(([name, method]) => {
    const call = client[name] as (request: object, signal?: AbortSignal) => unknown;
    const addressedCall = (path: CrmPath, fields?: object, signal?: AbortSignal): unknown =>
      call({ ...fields, ...namesIn(path) }, signal);
    return [name, namesCrm(method) ? addressedCall : call];
  });
  return { ...(Object.fromEntries(calls) as AddressedClient<D>), [Symbol.dispose]: () => client[Symbol.dispose]() };
}

function namesIn(path: CrmPath): Record<string, string> {
  return Object.fromEntries(
    Object.entries(path).map(([parameter, value]) => [parameter.replace(/Ref$/, 'Reference'), value as string]),
  );
}

/** Whether the requests of a method name a CRM: an empty message has all fields that are not optional. */
function namesCrm({ requestDeserialize }: MethodDefinition): boolean {
  return 'crmId' in (requestDeserialize(Buffer.alloc(0)) as object);
}
