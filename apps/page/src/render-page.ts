import { createRenderer } from '@scheduling/http';
import { type SpokenLanguage, spokenLanguages } from '@scheduling/runtime';
import type { FastifyReply } from 'fastify';
import { pageStyle } from './page-style.ts';
import { textsOf } from './texts/texts-of.ts';

/** What every page has. */
export interface PageFrame {
  language: SpokenLanguage;
  /** The same page in the other language. */
  otherLanguageHref: string;
  /** Of a page about a booking. */
  about?: BookingFrame | undefined;
  /** Of a booking page: origins whose pages may show it in a frame. */
  embedOn?: readonly string[];
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

type Template =
  | 'booking'
  | 'decide'
  | 'notice'
  | 'page-confirm'
  | 'page-form'
  | 'page-offers'
  | 'page-week'
  | 'question'
  | 'week';

const render = createRenderer(new URL('templates/', import.meta.url));

/** Renders a template in the frame of all pages. Escapes every value. */
export function renderPage(
  template: Template,
  { language, otherLanguageHref, about, embedOn }: PageFrame,
  content: PageContent,
): Page {
  const { css, policy } = pageStyle(about?.colour, embedOn);
  const texts = textsOf[language];
  const isBookingPage = embedOn !== undefined;
  const other = otherLanguageThan(language);
  const html = render(template, {
    ...content,
    language,
    style: css,
    header: about && { name: about.provider, sandbox: about.isSandbox ? texts.sandbox : undefined },
    footer: about && {
      ...texts.footer,
      through:
        about.crm === about.provider
          ? undefined
          : texts.footer[isBookingPage ? 'bookingThrough' : 'through'](about.crm),
      purpose: about.isForProvider ? undefined : texts.footer.purpose,
      privacyUrl: about.privacyUrl,
      imprints: about.imprints,
      // Another page in its place would lose what was typed, and most may not be shown in a frame.
      opensTab: isBookingPage,
    },
    otherLanguage: { tag: other, name: textsOf[other].thisLanguage, href: otherLanguageHref },
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
