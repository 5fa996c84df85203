export const requestIdHeader = 'x-request-id';
/** The trace of the caller (W3C Trace Context). */
export const traceHeader = 'traceparent';
export const idempotencyHeader = 'idempotency-key';
/** Marks calls that a service makes while it serves another one. */
export const nestedHeader = 'x-nested';
