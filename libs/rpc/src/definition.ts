/** One method of a service definition as ts-proto generates it. */
export interface MethodDefinition {
  path: string;
  requestStream: boolean;
  responseStream: boolean;
  requestSerialize: (value: never) => Buffer;
  requestDeserialize: (value: Buffer) => unknown;
  responseSerialize: (value: never) => Buffer;
  responseDeserialize: (value: Buffer) => unknown;
}

export type Definition = Record<string, MethodDefinition>;

export type RequestOf<M extends MethodDefinition> = ReturnType<M['requestDeserialize']>;
export type ResponseOf<M extends MethodDefinition> = ReturnType<M['responseDeserialize']>;

/** The name in traces: `scheduling.calendar.v1.AppointmentService/CreateAppointment`. */
export function spanName({ path }: MethodDefinition): string {
  return path.slice(1);
}

export function spanAttributes({ path }: MethodDefinition): Record<string, string> {
  const [, service = '', method = ''] = path.split('/');
  return { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method };
}
