import { describe, expect, it } from 'vitest';
import { arrayTexts, type ListMessage } from './json-list.ts';

const long = 'x'.repeat(65_536);

/** The texts, each with how many messages had arrived when it was made. */
async function textsOf(...messages: string[]): Promise<[arrived: number, text: string][]> {
  let arrived = 0;
  async function* arriving(): AsyncGenerator<ListMessage, undefined> {
    for (const json of messages) {
      arrived += 1;
      yield { json: Buffer.from(json) };
    }
    return undefined;
  }
  const texts = arrayTexts(arriving());
  const made: [number, string][] = [];
  for (;;) {
    const { value, done } = await texts.next();
    made.push([arrived, value.toString()]);
    if (done) return made;
  }
}

describe('the text of a list that arrives in messages', () => {
  it.each([[[]], [['']], [['', '']]])('is one text without elements: %j', async (messages) => {
    expect(await textsOf(...messages)).toEqual([[messages.length, '[]']]);
  });

  it('is one text if there is one short message', async () => {
    expect(await textsOf('1,2')).toEqual([[1, '[1,2]']]);
  });

  it('begins when a long message has arrived', async () => {
    expect(await textsOf(long, '2')).toEqual([
      [1, `[${long}`],
      [2, ',2'],
      [2, ']'],
    ]);
  });

  it('begins when a second short message has arrived, and waits for no more', async () => {
    expect(await textsOf('1', '2', '', '3')).toEqual([
      [2, '[1,2'],
      [4, ',3'],
      [4, ']'],
    ]);
    expect(await textsOf('', '2', '3')).toEqual([
      [2, '[2'],
      [3, ',3'],
      [3, ']'],
    ]);
  });
});
