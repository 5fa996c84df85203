/**
 * What a caller can do about a failure. One gRPC status and one HTTP status belong to each category:
 * `invalid` 400, `unauthenticated` 401, `forbidden` 403, `not_found` 404, `conflict` 409, `unprocessable` 422, `limited` 429,
 * `unavailable` 503.
 */
export type DomainCategory = 'invalid' | 'unauthenticated' | 'forbidden' | 'not_found' | 'conflict' | 'unprocessable' | 'limited' | 'unavailable';

/** One field at fault: a JSON pointer into the request's body, and what is wrong with it. */
export interface FieldError {
  pointer: string;
  detail: string;
}

/** A failure that the caller is told about. Every other error is logged in full and answered generically. */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly category: DomainCategory;
  /** Stable and machine-readable, `<entity>.<reason>`. */
  readonly code: string;
  readonly errors: FieldError[];
  /** When the same request can succeed, if that is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(category: DomainCategory, code: string, message: string, options: { errors?: FieldError[]; retryAfterSeconds?: number | undefined; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.category = category;
    this.code = code;
    this.errors = options.errors ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  static invalid(code: string, message: string, errors: FieldError[] = []): DomainError {
    return new DomainError('invalid', code, message, { errors });
  }

  static notFound(code: string, message: string): DomainError {
    return new DomainError('not_found', code, message);
  }

  static conflict(code: string, message: string): DomainError {
    return new DomainError('conflict', code, message);
  }

  static unprocessable(code: string, message: string): DomainError {
    return new DomainError('unprocessable', code, message);
  }

  /** Too often for now. */
  static limited(code: string, message: string, retryAfterSeconds: number): DomainError {
    return new DomainError('limited', code, message, { retryAfterSeconds });
  }

  static unauthenticated(code: string, message: string): DomainError {
    return new DomainError('unauthenticated', code, message);
  }

  static forbidden(code: string, message: string): DomainError {
    return new DomainError('forbidden', code, message);
  }

  static unavailable(code: string, message: string, cause?: unknown): DomainError {
    return new DomainError('unavailable', code, message, { cause });
  }
}
