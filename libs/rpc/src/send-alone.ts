import type { Metadata, ServiceError } from '@grpc/grpc-js';
import type { Channel } from './channel.ts';
import { replayHeader, toMetadata } from './headers.ts';

/** A unary call, ready to be sent. */
export interface OutgoingCall {
  path: string;
  request: Buffer;
  metadata: Record<string, string>;
  /** In epoch milliseconds. */
  deadlineMs: number;
  /** Called before the response if that repeats an earlier one. */
  onReplay?: (() => void) | undefined;
}

/** A call that somebody waits for. */
export interface WaitingCall extends OutgoingCall {
  resolve: (response: Buffer) => void;
  reject: (error: ServiceError) => void;
}

/** Makes a gRPC call of its own for a call. */
export function sendAlone(
  { client }: Channel,
  { path, request, metadata, deadlineMs, onReplay, resolve, reject }: WaitingCall,
): void {
  const call = client.makeUnaryRequest(
    path,
    unchanged,
    unchanged,
    request,
    toMetadata(metadata),
    { deadline: deadlineMs },
    (error, response) => {
      if (error) reject(error);
      else resolve(response!);
    },
  );
  call.on('metadata', (received: Metadata) => {
    if (received.get(replayHeader).length > 0) onReplay?.();
  });
}

function unchanged(bytes: Buffer): Buffer {
  return bytes;
}
