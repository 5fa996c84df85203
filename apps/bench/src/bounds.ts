import type { Row } from './report.ts';

/** What a case is compared with: a ratio within one run, because times depend on the machine and on what else it does. */
interface Bound {
  case: string;
  what: string;
  ratioOf: (row: Row) => number | undefined;
  atLeast?: number;
  atMost?: number;
}

/** With room for what else a machine does: the ratios themselves are in docs/performance.md. */
export const bounds: Bound[] = [
  {
    case: 'book, 20,000 appointments',
    what: 'bookings per second to those of Postgres alone',
    ratioOf: ({ ratio }) => ratio,
    atLeast: 0.35,
  },
  {
    case: 'book with and without the event feed',
    what: 'p99 of bookings with the event feed to that without',
    ratioOf: ({ background }) => background?.p99,
    atMost: 3,
  },
  {
    case: 'book with and without the event feed',
    what: 'processor time of Postgres with the event feed to that without',
    ratioOf: ({ background }) => background?.postgres,
    atMost: 1.4,
  },
];

/** A line for each bound of a case that was measured. */
export function compareWithBounds(rows: Row[]): { line: string; isKept: boolean }[] {
  return rows.flatMap((row) =>
    bounds
      .filter((bound) => bound.case === row.case)
      .map(({ what, ratioOf, atLeast = 0, atMost = Number.POSITIVE_INFINITY }) => {
        const ratio = ratioOf(row) ?? Number.NaN;
        const isKept = ratio >= atLeast && ratio <= atMost;
        const limit = atMost === Number.POSITIVE_INFINITY ? `at least ${atLeast}` : `at most ${atMost}`;
        return { line: `${isKept ? 'kept' : 'NOT KEPT'}: ${what}: ${ratio.toFixed(2)}, ${limit}`, isKept };
      }),
  );
}
