/**
 * The pairs of a message as they are stored: null if there are none. Undefined if there is no message, which says
 * nothing about those that are stored.
 */
export function metadataPairs(
  metadata: { pairs: Record<string, string> } | undefined,
): Record<string, string> | null | undefined {
  if (metadata === undefined) return undefined;
  return Object.keys(metadata.pairs).length === 0 ? null : metadata.pairs;
}
