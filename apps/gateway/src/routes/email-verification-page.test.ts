import { describe, expect, it } from 'vitest';
import { confirmPage, outcomePage } from './email-verification-page.ts';

describe('the verification page', () => {
  it('escapes what it shows', () => {
    const page = confirmPage({ token: '"><script>1</script>', email: '<b>&\'@x', language: 'en' });
    expect(page).not.toContain('<script>');
    expect(page).toContain('&lt;b&gt;&amp;&#39;@x');
    expect(page).toContain('value="&quot;&gt;&lt;script&gt;1&lt;/script&gt;"');
  });

  it.each(['de', 'en'] as const)('has one button and no script, in %s', (language) => {
    const page = confirmPage({ token: 't', email: 'a@b', language });
    expect(page.match(/<button/g)).toHaveLength(1);
    expect(page).toContain('<form method="post"');
    expect(page).toContain(`<html lang="${language}">`);
    expect(page).not.toMatch(/<script|onclick|https?:/);
  });

  it('says in other words how each outcome is', () => {
    const outcomes = ['confirmed', 'used', 'expired', 'unknown', 'unavailable'] as const;
    expect(new Set(outcomes.map((outcome) => outcomePage(outcome, 'de'))).size).toBe(outcomes.length);
  });
});
