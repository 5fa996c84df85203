import { UsageError } from './config.ts';
import type { StackInfo } from './stack-file.ts';

export interface GatewayRequest {
  method: 'GET' | 'POST' | 'DELETE';
  /** Below the CRM. */
  path: string;
  body?: unknown;
}

export interface GatewayAnswer {
  status: number;
  statusText: string;
  durationMs: number;
  /** Parsed if it is JSON. */
  body: unknown;
  /** When to retry after a 503. */
  retryAfterMs: number | undefined;
}

const requestTimeoutMs = 10_000;

/** Sends a request as the demo CRM. Rejects with a UsageError if the gateway does not respond. */
export async function sendRequest({ gateway, crmId, apiKey }: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, request: GatewayRequest): Promise<GatewayAnswer> {
  const startedAt = performance.now();
  const response = await fetch(`${gateway}/crms/${crmId}${request.path}`, {
    method: request.method,
    headers: { 'X-SERVICE-CLIENT-ID': apiKey, ...(request.body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    body: request.body === undefined ? undefined : JSON.stringify(request.body),
    signal: AbortSignal.timeout(requestTimeoutMs),
  }).catch(() => {
    throw new UsageError(`The gateway at ${gateway} is not responding.`);
  });
  const text = await response.text();
  const body: unknown = /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : text;
  const { status, statusText } = response;
  const retryAfter = response.headers.get('retry-after');
  const retryAfterMs = status === 503 && retryAfter !== null ? Number(retryAfter) * 1_000 : undefined;
  return { status, statusText, durationMs: performance.now() - startedAt, body, retryAfterMs };
}
