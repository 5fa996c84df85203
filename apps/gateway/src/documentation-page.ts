import { contentHash } from '@scheduling/http';
import { renderTemplate } from './html-page.ts';
import { type RenderedFile, renderedFile } from './rendered-files.ts';

/** What the viewer must not do: nothing comes from a foreign host, and nothing is sent to one. */
const options = {
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  withDefaultFonts: false,
  // The key is not kept in the browser.
  persistAuth: false,
  documentDownloadType: 'direct',
  defaultOpenFirstTag: false,
  orderSchemaPropertiesBy: 'preserve',
  // Small texts are too pale (WCAG 1.4.3), and the link leads to a foreign site.
  customCss: `
.light-mode { --scalar-color-3: #6a6a6a; --scalar-color-green: #00734a; --scalar-color-orange: #b33c00; --scalar-color-red: #c40000; --scalar-color-blue: #005ea8; }
.dark-mode { --scalar-color-3: #a0a0a0; --scalar-color-red: #ff7070; }
a[href^='https://scalar.com'] { display: none; }
`,
};

/** How the text begins that Scalar shows in an empty field for a key. It looks as if there were one. */
export const placeholderLikeKey = 'QUxMIFlPVVIg';

/**
 * The page works under whatever name the gateway was reached by, and sends its requests there. Scalar leaves out what
 * screen readers need to know of input fields that complete, of links with an icon only, and of some buttons.
 */
const script = `
new MutationObserver(() => {
  for (const field of document.querySelectorAll('[role=combobox]:not([aria-expanded])')) field.setAttribute('aria-expanded', 'false');
  for (const button of document.querySelectorAll('button[role=none]')) button.removeAttribute('role');
  for (const field of document.querySelectorAll('input[placeholder^="${placeholderLikeKey}"]')) field.placeholder = 'Your API key';
  for (const link of document.querySelectorAll('a[target=_blank]:has(> svg):not([aria-label])')) link.setAttribute('aria-label', link.href);
}).observe(document.getElementById('app'), { childList: true, subtree: true });
Scalar.createApiReference('#app', {
  ...${JSON.stringify(options)},
  url: new URL('openapi.json', document.baseURI).href,
  servers: [{ url: new URL('.', document.baseURI).href.replace(/\\/$/, ''), description: 'this gateway' }],
});
`;

const contentSecurityPolicy = [
  "default-src 'none'",
  `script-src 'self' ${contentHash(script)}`,
  // Scalar makes style elements without a nonce, and their content depends on its version and options. They can load
  // nothing from elsewhere.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

export const documentationPage: RenderedFile = renderedFile(
  'text/html; charset=utf-8',
  renderTemplate('documentation', { script }),
  {
    'content-security-policy': contentSecurityPolicy,
    'referrer-policy': 'no-referrer',
  },
);
