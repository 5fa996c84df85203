import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { needsBook } from '../key-scopes.ts';
import { apiInfoValue, problems, wrapped } from '../schemas.ts';
import { participationParams } from './participations.ts';

/** interface 4.3: the person's link to a participation, a page of which `pageUrl` is the base, without a trailing slash. */
export function participationLinkRoutes({ participations }: Clients, pageUrl: string): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/provider/:providerRef/participations/:participationRef/link',
      { schema: getLinkSchema, config: needsBook },
      async ({ params }) => {
        const { token } = await participations.getParticipationLink(params);
        return { 'api-info': apiInfoValue, link: { url: `${pageUrl}/booking/${token}` } };
      },
    );
  };
}

const link = Type.Object(
  { url: Type.String() },
  {
    title: 'ParticipationLink',
    examples: [{ url: 'https://scheduling.example.com/booking/AQEBmhYzmGh1cLWhMvO0ZQZhY21lU0nJ2mC1qX3bFr0oKQvYtg' }],
  },
);

const getLinkSchema = {
  operationId: 'getParticipationLink',
  summary: 'Get the person’s link to a participation',
  description:
    'The address of the page on which the person sees, moves and cancels the booking, for an SMS or a portal of the CRM. Whoever has it can do that, so give it to nobody else. ' +
    'It works until the person’s e-mail address changes, and at most until 30 days after the end of the appointment. 404 `link.not_found` if no link works any more, ' +
    'or if the participation is `DELETED`. It does not depend on the rule `selfService`, which says whether mails have such a link.',
  tags: ['Participations'],
  params: participationParams,
  response: {
    200: wrapped('link', link, 'The link'),
    ...problems(['provider.not_found', 'participation.not_found', 'link.not_found']),
  },
} as const;
