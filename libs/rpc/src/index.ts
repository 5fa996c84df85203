export { type ClientOptions, createClient, type ClientOf, type RpcClient } from './client.ts';
export { type CredentialsOptions, openCredentials, type RpcCredentials } from './credentials.ts';
export type { Definition, MethodDefinition, RequestOf, ResponseOf } from './definition.ts';
export { type EnumName, enumName, enumNames } from './enum-name.ts';
export { isUnimplemented } from './errors.ts';
export {
  type Callers,
  type Handlers,
  type HostedService,
  hostOperatorService,
  hostService,
  type Turn,
} from './hosted-service.ts';
export { metadataPairs } from './metadata-pairs.ts';
export { callWeight, partOfPages } from './take-turn.ts';
export { withoutNulls } from './without-nulls.ts';
