/** A part of a document that a script generates, between `begin` and the next `<!-- end -->`. */
export interface GeneratedSection {
  /** The current text of the section. */
  read(document: string): string;
  /** The document with a new text in the section. */
  replace(document: string, text: string): string;
}

const end = '\n<!-- end -->';

export function generatedSection(begin: string): GeneratedSection {
  const place = (document: string): [from: number, to: number] => {
    const from = document.indexOf(begin) + begin.length;
    const to = document.indexOf(end, from);
    if (from < begin.length || to < from)
      throw new Error(`the document has lost the markers of its generated section: ${begin.trim()}`);
    return [from, to];
  };
  return {
    read: (document) => document.slice(...place(document)),
    replace: (document, text) => {
      const [from, to] = place(document);
      return document.slice(0, from) + text + document.slice(to);
    },
  };
}
