import { beginFeed, endOfFeed } from '@scheduling/calendar-file/feed';
import type { ReadCalendarResponse } from '@scheduling/contracts/calendar/v1';
import type { PublicProvider } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { singleLine } from '@scheduling/presentation';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import type { CalendarLimit } from '../calendar-limit.ts';
import type { Clients } from '../clients.ts';

/** The calendar of a subscription, which programs read again and again. */
export function calendarRoutes({ persons, providers }: Clients, limit: CalendarLimit) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:file', async (request, reply) => {
      const secret = secretOf(request);
      const known = versionsIn(request.headers['if-none-match'] ?? '');
      const read = (version: string): Promise<ReadCalendarResponse> => persons.readCalendar({ secret, version });
      // Before the answer: others are read at the same time.
      const isKnown = limit.knows(secret);
      if (isKnown) limit.count(secret);
      let calendar = await read(known[0]?.version ?? '');
      if (!isKnown) limit.count(secret);
      const { provider } = await providers.getPublicProvider({ providerId: calendar.providerId });
      const beginning = beginFeed(nameOf(calendar, provider!));
      void reply.header('cache-control', 'private, max-age=300');
      if (calendar.events === undefined && !known.some((each) => each.tag === tagOf(calendar.version, beginning)))
        // The reader has these events under another name.
        calendar = await read('');
      const tag = tagOf(calendar.version, beginning);
      void reply.header('etag', tag);
      if (known.some((each) => each.tag === tag)) return reply.code(304).send();
      return reply
        .type('text/calendar; charset=utf-8')
        .header('content-disposition', 'inline; filename="calendar.ics"')
        .send(Buffer.concat([Buffer.from(beginning), calendar.events!, Buffer.from(endOfFeed)]));
    });
  };
}

function secretOf(request: FastifyRequest): string {
  const secret = findSecret(request);
  if (secret === undefined) throw new DomainError('link.not_found');
  return secret;
}

/** 32 bytes in base64url; another text is none, and not sent to calendar. */
export function findSecret({ params }: FastifyRequest): string | undefined {
  const { file = '' } = params as { file?: string };
  return /^([\w-]{43})\.ics$/.exec(file)?.[1];
}

/** The provider's, and which part of the calendar it is. */
function nameOf({ resourceReference, contactReference }: ReadCalendarResponse, provider: PublicProvider): string {
  const part = [resourceReference, contactReference].filter((each) => each !== undefined).join(', ');
  return singleLine(part === '' ? provider.name : `${provider.name} (${part})`);
}

/** Of all bytes: the version stands for the events. */
function tagOf(version: string, beginning: string): string {
  return `"${version}-${createHash('sha256').update(beginning).digest('base64url').slice(0, 16)}"`;
}

/** The tags of ours in an If-None-Match. Proxies that compress make them weak. */
function versionsIn(header: string): { tag: string; version: string }[] {
  return [...header.slice(0, 1_000).matchAll(/"(\d{1,12})-[\w-]{16}"/g)].map(([tag, version]) => ({
    tag,
    version: version!,
  }));
}
