/** The rejections of the gateway itself: code, HTTP status, and the default message for the client. */
export const requestErrors = {
  'request.invalid': { status: 400, text: 'The request is invalid. Each invalid field is listed in errors.' },
  'request.malformed': { status: 400, text: 'The request is malformed: its URL, headers or body cannot be parsed.' },
  'request.unknown_field': {
    status: 400,
    text: 'The request has unknown parameters or fields. Each of them is listed in errors.',
  },
  'idempotency_key.invalid': {
    status: 400,
    text: 'The Idempotency-Key header must be 1 to 255 visible ASCII characters.',
  },
  'key.scope_insufficient': { status: 403, text: 'The scope of the API key does not include this operation.' },
  // Interface 7 gives this invalid field a status and a text of its own.
  'account.reference_unparsable': { status: 404, text: 'Unable to parse account reference.' },
  'route.not_found': { status: 404, text: 'There is nothing at this address.' },
  'method.not_allowed': { status: 405, text: 'This method is not allowed here.' },
  'request.timeout': { status: 408, text: 'The request did not arrive in time.' },
  'request.too_large': { status: 413, text: 'The body is larger than 1 MiB.' },
  'request.address_too_long': { status: 414, text: 'The URL of the request is too long.' },
  'request.unsupported_media_type': {
    status: 415,
    text: 'The body must be JSON, with Content-Type: application/json.',
  },
  'request.expectation_failed': { status: 417, text: 'The only supported expectation is 100-continue.' },
  'rate.concurrent': { status: 429, text: 'Too many requests from this CRM are in progress.' },
  'rate.limited': { status: 429, text: 'The key has used up its requests per minute.' },
  'rate.strangers': { status: 429, text: 'Too many requests without a valid API key come from this address.' },
  'request.headers_too_large': { status: 431, text: 'The headers of the request are too large.' },
  internal: { status: 500, text: 'Something went wrong on our side.' },
  'request.unsupported_version': { status: 505, text: 'The service supports HTTP/1.1.' },
} as const satisfies Record<string, { status: number; text: string }>;

export type RequestErrorCode = keyof typeof requestErrors;
