/** A fenced block of a Markdown document. */
export interface Block {
  /** `sh` for what a reader pastes into a shell; anything else is shown only. */
  language: string;
  text: string;
}

export function readBlocks(markdown: string): Block[] {
  return [...markdown.matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)].map(([, language = '', text = '']) => ({ language, text }));
}

/** The commands of a block: its lines, with those that continue put together. */
export function commandsOf({ text }: Block): string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}
