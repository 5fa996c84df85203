/** A fenced block of a Markdown document. */
export interface Block {
  /** `sh` for commands to be pasted into a shell; anything else is only shown. */
  language: string;
  text: string;
}

export function readBlocks(markdown: string): Block[] {
  return [...markdown.matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
}

/** The commands of a block: its lines, with continued lines joined. */
export function commandsOf({ text }: Block): string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}
