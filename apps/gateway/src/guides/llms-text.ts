import type { Guide, Guides } from './read-guides.ts';

/** What programs that read and write code read first (llmstxt.org): the guides as Markdown, and the document. */
export function writeLlmsText({ index, ordered, references }: Guides, publicUrl: string): string {
  const questions = new Map(
    [...index.markdown.matchAll(/^\| \[[^\]]+\]\(([\w-]+)\.md\) \| (.+) \|$/gm)].map(([, name, question]) => [
      name,
      question,
    ]),
  );
  const line = ({ name, title }: Guide): string => {
    const question = questions.get(name);
    return `- [${title}](${publicUrl}/guides/${name}.md)${question === undefined ? '' : `: ${question}`}`;
  };
  return `# Scheduling API

> The HTTP API of an appointment service. CRM systems use it to manage calendars, appointments and customers, and to book without ever overbooking.

Requests go to ${publicUrl}/crms/:crmId, with the API key of the CRM in the header X-SERVICE-CLIENT-ID. The operator of the service gives both.

## Guides

${ordered.map(line).join('\n')}

## Reference

${references.map(line).join('\n')}
- [OpenAPI document](${publicUrl}/openapi.json): every operation, field, status and error code (OpenAPI 3.1)
- [Collection](${publicUrl}/collection.json): the same in the format of Postman, in an order in which all requests succeed in an empty sandbox
`;
}
