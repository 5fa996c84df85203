import { spokenLanguages } from '@scheduling/runtime';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { contentSecurityPolicy } from '../html-page.ts';
import { closedPage, confirmPage, failurePage } from './email-verification-page.ts';

const verification = { email: 'anna@example.com', userName: 'Anna Beispiel', crmName: 'Studio-Verwaltung' };
const outcomes = ['confirmed', 'used', 'expired'] as const;
const failures = ['unknown', 'unavailable'] as const;

describe('the verification page', () => {
  it('escapes the values that it shows', () => {
    const hostile = { email: "<b>&'@x", userName: '<img src=x>', crmName: '</p><script>1</script>' };
    const pages = [
      confirmPage(hostile, { token: '"><script>1</script>', language: 'en' }),
      ...outcomes.map((outcome) => closedPage(outcome, hostile, 'en')),
    ];
    for (const page of pages) {
      expect(page).not.toMatch(/<script|<img|<b>/);
      expect(page).toContain('&lt;b&gt;&amp;&#39;@x');
      expect(page).toContain('&lt;img src=x&gt;');
    }
    expect(pages[0]).toContain('value="&quot;&gt;&lt;script&gt;1&lt;/script&gt;"');
  });

  it.each(spokenLanguages)('has one button and no script, in %s', (language) => {
    const page = confirmPage(verification, { token: 't', language });
    expect(page.match(/<button/g)).toHaveLength(1);
    expect(page).toContain('<form method="post"');
    expect(page).toContain(`<html lang="${language}">`);
    expect(page).not.toMatch(/<script|onclick|https?:/);
  });

  it.each(spokenLanguages)(
    'names the person, the address and the CRM in every state of a known link, in %s',
    (language) => {
      for (const page of [
        confirmPage(verification, { token: 't', language }),
        ...outcomes.map((outcome) => closedPage(outcome, verification, language)),
      ]) {
        const [, text = '', facts = ''] = /<p>(.*?)<\/p>\s*<dl>(.*?)<\/dl>/s.exec(page) ?? [];
        expect(text).toContain(verification.crmName);
        for (const value of Object.values(verification)) expect(facts).toContain(`<dd dir="auto">${value}</dd>`);
      }
    },
  );

  it('ends with the imprint of the CRM in every state of a known link, and with none if the CRM has none', () => {
    const pagesOf = (facts: typeof verification & { crmImprint?: string }) => [
      confirmPage(facts, { token: 't', language: 'en' }),
      ...outcomes.map((outcome) => closedPage(outcome, facts, 'en')),
    ];
    for (const page of pagesOf({ ...verification, crmImprint: 'Acme <b>GmbH</b>\nBerlin' })) {
      expect(page).toMatch(
        /<footer class="soft" dir="auto">Acme &lt;b&gt;GmbH&lt;\/b&gt;\nBerlin<\/footer>\s*<\/main>/,
      );
    }
    for (const page of pagesOf(verification)) expect(page).not.toContain('<footer');
  });

  it.each(spokenLanguages)('has a different text for each state, in %s', (language) => {
    const pages = [
      ...outcomes.map((outcome) => closedPage(outcome, verification, language)),
      ...failures.map((failure) => failurePage(failure, language)),
    ];
    expect(new Set(pages.map((page) => /<h1>(.*?)<\/h1>/.exec(page)![1])).size).toBe(pages.length);
  });

  it('allows only its own style', () => {
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(failurePage('unknown', 'de'))!;
    expect(contentSecurityPolicy).toContain(
      `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    );
  });
});
