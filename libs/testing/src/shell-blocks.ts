/** A fenced block of a Markdown document. */
export interface Block {
  /** `sh` for commands to be pasted into a shell; anything else is only shown. */
  language: string;
  /** The rest of the line, which viewers do not show. */
  note: string;
  text: string;
}

export function readBlocks(markdown: string): Block[] {
  return [...markdown.matchAll(/^ *```(\w*) ?([^`\n]*)\n(.*?)^ *```$/gms)].map(
    ([, language = '', note = '', text = '']) => ({
      language,
      note,
      text,
    }),
  );
}

/** The commands of a block: its lines, with continued lines joined. */
export function commandsOf({ text }: Block): string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}
