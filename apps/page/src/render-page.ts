import { createRenderer } from '@scheduling/http';
import { type SpokenLanguage, spokenLanguages } from '@scheduling/runtime';
import type { FastifyReply } from 'fastify';
import { pageStyle } from './page-style.ts';
import { textsOf } from './texts/texts-of.ts';

/** What every page has. */
export interface PageFrame {
  language: SpokenLanguage;
  /** The query of the same page in the other language. */
  otherLanguageQuery: string;
  /** Of a page about a booking. */
  about?: BookingFrame | undefined;
}

/** Whose page it is. */
export interface BookingFrame {
  provider: string;
  colour: string | undefined;
  isSandbox: boolean;
  imprints: string[];
  privacyUrl: string | undefined;
  /** The name of the CRM. */
  crm: string;
  /** Of a page for whoever decides for the provider: it says nothing of what the person's data is for. */
  isForProvider?: boolean;
}

export interface Page {
  html: string;
  /** Its Content-Security-Policy. */
  policy: string;
}

export interface PageContent {
  title: string;
  /** Unless it is the title. */
  heading?: string;
  /** The other values that the template shows. */
  [name: string]: unknown;
}

const render = createRenderer(new URL('templates/', import.meta.url));

/** Renders a template in the frame of all pages. Escapes every value. */
export function renderPage(
  template: 'booking' | 'decide' | 'notice' | 'question' | 'week',
  { language, otherLanguageQuery, about }: PageFrame,
  content: PageContent,
): Page {
  const { css, policy } = pageStyle(about?.colour);
  const texts = textsOf[language];
  const other = otherLanguageThan(language);
  const html = render(template, {
    ...content,
    language,
    style: css,
    header: about && { name: about.provider, sandbox: about.isSandbox ? texts.sandbox : undefined },
    footer: about && {
      ...texts.footer,
      through: about.crm === about.provider ? undefined : texts.footer.through(about.crm),
      purpose: about.isForProvider ? undefined : texts.footer.purpose,
      privacyUrl: about.privacyUrl,
      imprints: about.imprints,
    },
    otherLanguage: { tag: other, name: textsOf[other].thisLanguage, href: otherLanguageQuery },
  });
  return { html, policy };
}

export function otherLanguageThan(language: SpokenLanguage): SpokenLanguage {
  return spokenLanguages.find((each) => each !== language)!;
}

export function sendPage(reply: FastifyReply, status: number, { html, policy }: Page): FastifyReply {
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .headers({ ...commonHeaders, 'content-security-policy': policy })
    .send(html);
}

/** Of every response: it is for one person, and neither stored nor found. */
export const commonHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': pageStyle(undefined).policy,
  // With no-referrer, Chromium would send `Origin: null` with our own forms.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
};
