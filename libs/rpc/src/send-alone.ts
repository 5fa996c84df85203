import type { ServiceError } from '@grpc/grpc-js';
import type { Channel } from './channel.ts';
import { toMetadata } from './headers.ts';

/** A unary call, ready to be sent. */
export interface OutgoingCall {
  path: string;
  request: Buffer;
  metadata: Record<string, string>;
  /** In epoch milliseconds. */
  deadlineMs: number;
}

/** A call that somebody waits for. */
export interface WaitingCall extends OutgoingCall {
  resolve: (response: Buffer) => void;
  reject: (error: ServiceError) => void;
}

/** Makes a gRPC call of its own for a call. */
export function sendAlone({ client }: Channel, { path, request, metadata, deadlineMs, resolve, reject }: WaitingCall): void {
  client.makeUnaryRequest(path, unchanged, unchanged, request, toMetadata(metadata), { deadline: deadlineMs }, (error, response) => {
    if (error) reject(error);
    else resolve(response!);
  });
}

function unchanged(bytes: Buffer): Buffer {
  return bytes;
}
