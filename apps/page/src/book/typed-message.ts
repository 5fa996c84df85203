import type { PageVisit } from './page-visit.ts';

/** What was typed in a form that is not shown again, so that it can be copied. */
export function typedMessage(
  { texts }: PageVisit,
  message: string | undefined,
): { label: string; value: string } | undefined {
  return message ? { label: texts.book.offers.message, value: message } : undefined;
}
