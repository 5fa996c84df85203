import { type ErrorCode, errorCodes } from './error-codes.ts';
import type { DomainCategory } from './error-table.ts';

/** One field at fault: a JSON pointer into the request's body, and what is wrong with it. */
export interface FieldError {
  pointer: string;
  detail: string;
}

export interface DomainErrorOptions {
  /** Replaces the text of the table, where it names what the request was about. */
  text?: string;
  errors?: FieldError[];
  /** When the same request can succeed, if that is known. */
  retryAfterSeconds?: number | undefined;
  cause?: unknown;
  /** Only for an error that has arrived from another service: its version may know codes that the tables here do not have. */
  category?: DomainCategory;
}

/** A failure that the caller is told about. Every other error is logged in full and answered generically. */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly category: DomainCategory;
  /** Stable and machine-readable, `<entity>.<reason>`. */
  readonly code: string;
  readonly errors: FieldError[];
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, options: DomainErrorOptions = {}) {
    super(options.text ?? errorCodes[code].text, { cause: options.cause });
    this.category = options.category ?? errorCodes[code].category;
    this.code = code;
    this.errors = options.errors ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
