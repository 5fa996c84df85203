import { DomainError, type ErrorCode, type FieldError } from '@scheduling/errors';
import { parseDateTime, parseTimeOfDay } from './date-time.ts';

/** Collects what is wrong with a request, so that the caller learns all of it at once. */
export interface FieldErrors {
  add(pointer: string, detail: string): void;
  /** The instant of a date-time text; a text that is none is noted as a fault, and the stand-in returned is never used. */
  dateTime(pointer: string, text: string, timeZone: string): Date;
  /** The time of day of a date-time text, in the same way. */
  timeOfDay(pointer: string, text: string, timeZone: string): Temporal.PlainTime;
  /** Throws `code` (invalid) when there are faults. */
  throwIfAny(code: ErrorCode): void;
}

export function collectFieldErrors(): FieldErrors {
  const errors: FieldError[] = [];
  const add = (pointer: string, detail: string): void => {
    errors.push({ pointer, detail });
  };
  const noDateTime = 'is not a date-time of the form YYYY-MM-DDThh:mm';
  return {
    add,
    dateTime: (pointer, text, timeZone) => {
      const instant = parseDateTime(text, timeZone);
      if (instant === undefined) add(pointer, noDateTime);
      return instant ?? new Date(Number.NaN);
    },
    timeOfDay: (pointer, text, timeZone) => {
      const time = parseTimeOfDay(text, timeZone);
      if (time === undefined) add(pointer, noDateTime);
      return time ?? new Temporal.PlainTime();
    },
    throwIfAny: (code) => {
      if (errors.length > 0) throw new DomainError(code, { errors });
    },
  };
}
