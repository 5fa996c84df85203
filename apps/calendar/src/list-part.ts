import { maxCharacters } from './message-length.ts';

/** A part of a list that is streamed. */
export interface ListPart {
  /** Each an object of the REST interface, as JSON. */
  elements: string[];
  /** Set in the last part of a page if there is another page. */
  nextCursor?: string | undefined;
}

/** Each part fits into one message, unless it is a single element; an empty list is one part. */
export function* splitForMessages(elements: string[], nextCursor: string | undefined): Generator<ListPart> {
  let part: string[] = [];
  let characters = 0;
  for (const element of elements) {
    if (part.length > 0 && characters + element.length > maxCharacters) {
      yield { elements: part };
      part = [];
      characters = 0;
    }
    part.push(element);
    characters += element.length;
  }
  yield { elements: part, nextCursor };
}
