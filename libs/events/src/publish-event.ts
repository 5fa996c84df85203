import { headers as createHeaders, type MsgHdrs } from '@nats-io/transport-node';

/** The metadata of an event. */
export interface EventAttributes {
  id: string;
  /** The publishing service. */
  service: string;
  /** Full name of the protobuf message. */
  type: string;
  time: Date;
  requestId: string;
  /** The span in which the event occurred, if it is traced. */
  traceparent?: string | null;
  /** It was published before: a consumer checks whether it has already processed it before doing any work. */
  repeated: boolean;
}

const repeatedHeader = 'x-repeated';

/** A CloudEvent in binary mode: attributes in headers, data in the body. */
export function eventHeaders({ id, service, type, time, requestId, traceparent, repeated }: EventAttributes): MsgHdrs {
  const headers = createHeaders();
  headers.set('ce-specversion', '1.0');
  headers.set('ce-id', id);
  headers.set('ce-source', `scheduling/${service}`);
  headers.set('ce-type', type);
  headers.set('ce-time', time.toISOString());
  headers.set('content-type', 'application/protobuf');
  headers.set('x-request-id', requestId);
  if (traceparent) headers.set('traceparent', traceparent);
  if (repeated) headers.set(repeatedHeader, 'true');
  return headers;
}

/** Whether the event was published before; see {@link EventAttributes.repeated}. */
export function isRepeated(headers: MsgHdrs | undefined): boolean {
  return headers?.has(repeatedHeader) === true;
}
