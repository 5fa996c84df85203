/**
 * What a caller can do about a failure. Each category has one gRPC status and one HTTP status: `invalid` 400,
 * `unauthenticated` 401, `forbidden` 403, `not_found` 404, `conflict` 409, `gone` 410, `unprocessable` 422, `limited`
 * 429, `unavailable` 503.
 */
export type DomainCategory =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'gone'
  | 'unprocessable'
  | 'limited'
  | 'unavailable';

/** Codes (`<entity>.<reason>`) with their category and their default message. */
export type ErrorTable = Record<string, { category: DomainCategory; text: string }>;
