import { type MsgHdrs, MsgHdrsImpl } from '@nats-io/transport-node';

/** The metadata of an event. */
export interface EventAttributes {
  id: string;
  /** The publishing service. */
  service: string;
  /** Full name of the protobuf message. */
  type: string;
  time: Date;
  requestId: string;
  /** The span that publishes it, or in which it occurred, if it is traced. */
  traceparent?: string | null;
  /** It was published before: a consumer checks whether it has already processed it before doing any work. */
  repeated: boolean;
}

const repeatedHeader = 'x-repeated';

/** A CloudEvent in binary mode: attributes in headers, data in the body. */
export function eventHeaders({ id, service, type, time, requestId, traceparent, repeated }: EventAttributes): MsgHdrs {
  // At once: to add a header to others takes longer than all of these.
  const headers = MsgHdrsImpl.fromRecord({
    'ce-specversion': ['1.0'],
    'ce-id': [id],
    'ce-source': [`scheduling/${service}`],
    'ce-type': [type],
    'ce-time': [time.toISOString()],
    'content-type': ['application/protobuf'],
    ...(repeated && { [repeatedHeader]: ['true'] }),
  });
  // What comes from elsewhere is checked: a line break would begin another header.
  headers.append('x-request-id', requestId);
  if (traceparent) headers.append('traceparent', traceparent);
  return headers;
}

/** Whether the event was published before; see {@link EventAttributes.repeated}. */
export function isRepeated(headers: MsgHdrs | undefined): boolean {
  return headers?.has(repeatedHeader) === true;
}
