import { type ErrorCode, errorCodes } from './error-codes.ts';
import type { DomainCategory } from './error-table.ts';

/** Why a slot cannot be booked (interface 10.2). */
export type SlotReason = 'taken' | 'full' | 'private' | 'closed' | 'off_raster' | 'blocked' | 'too_soon' | 'too_late';

/** One invalid field: a JSON pointer into the request's body, and what is wrong with it. */
export interface FieldError {
  pointer: string;
  detail: string;
}

export interface DomainErrorOptions {
  /** Replaces the message in the table, to name the subject of the request. */
  text?: string;
  errors?: FieldError[];
  /** Further distinguishes the cause for programs. */
  reason?: SlotReason | undefined;
  /** When the same request can succeed, if known. */
  retryAfterSeconds?: number | undefined;
  cause?: unknown;
  /**
   * Only for an error received from another service, whose version may have codes that the tables here do not contain.
   */
  category?: DomainCategory;
}

/** A failure that is reported to the caller. Every other error is logged in full and gets a generic response. */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly category: DomainCategory;
  /** Stable and machine-readable, `<entity>.<reason>`. */
  readonly code: string;
  readonly errors: FieldError[];
  readonly reason: SlotReason | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, options: DomainErrorOptions = {}) {
    super(options.text ?? errorCodes[code].text, { cause: options.cause });
    this.category = options.category ?? errorCodes[code].category;
    this.code = code;
    this.errors = options.errors ?? [];
    this.reason = options.reason;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
