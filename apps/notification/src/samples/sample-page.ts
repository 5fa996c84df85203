import { Eta } from 'eta';
import type { SampleMail } from './sample-mails.ts';

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>Sample mails</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 24px; }
section { display: flex; flex-wrap: wrap; gap: 24px; margin-bottom: 48px; }
article { width: 390px; }
iframe { width: 390px; height: 844px; border: 1px solid #888; border-radius: 12px; }
</style>
<h1>Sample mails, each beside the one before</h1>
<% for (const { template, language, content, before } of it.samples) { %>
<h2><%= template %> (<%= language %>)</h2>
<section>
<% for (const [label, mail] of [['Before', before], ['Then', content]]) { if (mail) { %>
<article>
<p><%= label %>: <strong><%= mail.subject %></strong><br>From <%= mail.from.name %></p>
<iframe title="<%= mail.subject %>" sandbox srcdoc="<%= mail.html %>"></iframe>
</article>
<% } } %>
</section>
<% } %>
</html>
`;

/** A page with every mail beside the one that its person received before, each as wide as a phone. */
export function renderSamplePage(samples: readonly SampleMail[]): string {
  return new Eta({ autoEscape: true }).renderString(page, { samples });
}
