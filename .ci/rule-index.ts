/**
 * Which rule of the interface is where: docs/rules.md, made from the comments that cite a rule ("interface 10.4").
 * `node .ci/rule-index.ts --write` writes it; without the option, it must be as it would be written.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

interface Citation {
  rule: string;
  file: string;
  name: string;
  sentence: string;
}

const indexFile = 'docs/rules.md';
/** Without them nobody would find the rule. */
const ruledChapters = /^(3|4|10|11)\./;
const commentPattern = /\/\*\*[\s\S]*?\*\/|(?:^[ \t]*(?:\/\/|--).*\n)+/gm;
const citationPattern = /\binterface (\d+(?:\.\d+)?)(?:(?:,| and|, and) (\d+\.\d+))*/gi;
const declarationPattern =
  /^(?:CREATE OR REPLACE FUNCTION|(?:export )?(?:async )?(?:function\*?|const|class|interface|type)) (\w+)/gm;
const faults: string[] = [];

const titles = readTitles(readFileSync('docs/interface.md', 'utf8'));
const citations = globSync(['apps/*/src/**/*.{ts,sql}', 'libs/*/src/**/*.{ts,sql}'])
  .filter(
    (file) =>
      !/\.test\.ts$|\/migrations\/|\/(schema|tables)\.sql$|libs\/(contracts|client)\/|apps\/faults\//.test(file),
  )
  .toSorted()
  .flatMap(citationsOf);

for (const { rule, file } of citations) {
  if (!titles.has(rule)) faults.push(`${file} cites interface ${rule}, which docs/interface.md does not have`);
}
for (const [rule, title] of titles) {
  const isCited = citations.some((citation) => citation.rule === rule);
  if (ruledChapters.test(rule) && !isCited) faults.push(`no code says that it implements interface ${rule} ${title}`);
}

const index = writeIndex();
if (process.argv.includes('--write')) writeFileSync(indexFile, index);
else if (readFileSync(indexFile, 'utf8') !== index)
  faults.push(`${indexFile} is not as the code says: run node .ci/rule-index.ts --write`);

for (const fault of faults) console.error(fault);
console.log(`${citations.length} citations of ${titles.size} rules checked, ${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;

/** The numbered headings of the interface: `10.4` → `Booking rules of a provider`. */
function readTitles(text: string): Map<string, string> {
  return new Map(
    [...text.matchAll(/^#+ (\d+(?:\.\d+)?)\.? (.*)$/gm)].map(([, rule = '', title = '']) => [rule, title]),
  );
}

function citationsOf(file: string): Citation[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(commentPattern)].flatMap(({ 0: comment, index }) => {
    const content = comment.replaceAll(/^\s*(\/\*\*?|\*\/|\*|\/\/|--) ?|\s*\*\/\s*$/gm, '').replaceAll(/\s+/g, ' ');
    const name = declarationAt(text, index + comment.length);
    return [...content.matchAll(citationPattern)].flatMap((match) =>
      [...match[0].matchAll(/\d+(?:\.\d+)?/g)].map(([rule]) => ({
        rule,
        file,
        name,
        sentence: sentenceAt(content, match.index),
      })),
    );
  });
}

/** The declaration that follows the comment, or else the one that contains it. */
function declarationAt(text: string, position: number): string {
  const declarations = [...text.matchAll(declarationPattern)];
  const next = declarations.find(({ index }) => index >= position && text.slice(position, index).trim() === '');
  return (next ?? declarations.findLast(({ index }) => index < position))?.[1] ?? '';
}

function sentenceAt(content: string, position: number): string {
  const start = content.slice(0, position).lastIndexOf('. ') + 2;
  const end = content.indexOf('. ', position);
  return content.slice(start === 1 ? 0 : start, end === -1 ? undefined : end + 1).trim();
}

function writeIndex(): string {
  const sections = [...titles].flatMap(([rule, title]) => {
    const found = citations.filter((citation) => citation.rule === rule);
    if (found.length === 0) return [];
    const lines = found.map(({ file, name, sentence }) => {
      const place = `- [\`${name || basename(file)}\`](../${file})`;
      return /^interface [\d., and]+$/i.test(sentence) ? place : `${place}: ${sentence}`;
    });
    return [`## ${rule} ${title}`, '', ...new Set(lines), ''];
  });
  return [
    '# Which rule is where',
    '',
    'For each section of [the interface](interface.md), the code that implements it. `node .ci/rule-index.ts --write` writes this',
    'file from the comments that cite a section, and CI rejects a section without code.',
    '',
    ...sections,
  ].join('\n');
}
