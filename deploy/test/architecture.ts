import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './kustomizations.ts';

/** The diagram in docs/architecture.md. */
export function readArrows() {
  const document = readFileSync(join(repositoryRoot, 'docs/architecture.md'), 'utf8');
  const diagram = /```mermaid\n([\s\S]*?)```/.exec(document)?.[1] ?? '';
  const ends = (pattern: RegExp): string[][] => [...diagram.matchAll(pattern)].map(([, ...found]) => found);
  return {
    calls: ends(/(\w+) -- gRPC --> (\w+)/g),
    http: new Set(ends(/-- (?:HTTP, JSON|[a-z ]*pages?) --> (\w+)/g).flat()),
    databases: new Set(ends(/(\w+) --- \w+Db/g).flat()),
    stream: new Set([...ends(/(\w+) -\. .* \.-> stream/g), ...ends(/stream -\. .* \.-> (\w+)/g)].flat()),
    mail: new Set(ends(/(\w+) -- SMTP --> mail/g).flat()),
    endpoints: new Set(ends(/(\w+) -- HTTPS --> endpoints/g).flat()),
  };
}
