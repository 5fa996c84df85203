export type Level = 'ok' | 'warning' | 'fault' | 'not checked';

/** The result of one check, and what to do if something is wrong. */
export interface Finding {
  check: string;
  level: Level;
  seen: string;
  remedy?: string;
}

export function ok(check: string, seen: string): Finding {
  return { check, level: 'ok', seen };
}

/** Nobody is affected yet; somebody should look today. */
export function warning(check: string, seen: string, remedy: string): Finding {
  return { check, level: 'warning', seen, remedy };
}

/** People are affected, or will be soon. */
export function fault(check: string, seen: string, remedy: string): Finding {
  return { check, level: 'fault', seen, remedy };
}

export function notChecked(check: string, missing: string): Finding {
  return { check, level: 'not checked', seen: `${missing} is not set` };
}

export function ageOf(time: Date, now: Date): string {
  return describeSeconds(Math.max(0, (now.getTime() - time.getTime()) / 1_000));
}

export function describeSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
