import { ParticipationState, type RequestedBooking } from '@scheduling/contracts/calendar/v1';
import type { PublicProvider } from '@scheduling/contracts/identity/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { multiLine } from '@scheduling/presentation';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { decisionLink } from '../booking-links.ts';
import type { Clients } from '../clients.ts';
import { describeRequest, type DecisionForm, type RequestVisit } from '../describe-request.ts';
import { fieldOf } from '../form-posts.ts';
import { pageLanguage } from '../page-language.ts';
import { renderPage, sendPage } from '../render-page.ts';
import { textsOf } from '../texts/texts-of.ts';
import { describeFrame, tokenOf } from '../visit.ts';

/** A request, as those see it who decide for its provider. Opening it changes nothing; its buttons decide. */
export function decideRoutes({ decisions, providers }: Clients, basePath: string) {
  const open = async (request: FastifyRequest, booking: RequestedBooking | undefined): Promise<RequestVisit> => {
    const { provider } = await providers.getPublicProvider({ providerId: booking!.providerId });
    return describeRequestVisit(request, booking!, provider!);
  };
  const linkOf = (request: FastifyRequest): string => {
    const { language, isChosen } = pageLanguage(request);
    return decisionLink(basePath, tokenOf(request), isChosen ? language : undefined);
  };

  return async (app: FastifyInstance): Promise<void> => {
    app.get('/:token', async (request, reply) => {
      const { booking } = await decisions.getRequestedBooking({ token: tokenOf(request) });
      const visit = await open(request, booking);
      return sendPage(reply, 200, pageOf(visit, linkOf(request)));
    });

    app.post('/:token', async (request, reply) => {
      const token = tokenOf(request);
      const message = multiLine(fieldOf(request, 'message') ?? '');
      const decision = fieldOf(request, 'decision');
      const again = async (status: number, error: DecisionForm['error']) => {
        const { booking } = await decisions.getRequestedBooking({ token });
        // Pressed twice.
        if (booking!.decision?.own && decision === (booking!.decision.confirmed ? 'confirm' : 'decline'))
          return reply.redirect(linkOf(request), 303);
        const visit = await open(request, booking);
        // Decided by somebody else in the meantime: the page says what, and who.
        const isWaiting = visit.booking.state === ParticipationState.REQUESTED;
        return sendPage(reply, isWaiting ? status : 409, pageOf(visit, linkOf(request), { message, error }));
      };
      if (decision !== 'confirm' && decision !== 'decline') return again(400, 'noDecision');
      const confirm = decision === 'confirm';
      try {
        const shown = fieldOf(request, 'shown') ?? '';
        await decisions.decideRequestedBooking({ token, confirm, message: message || undefined, shown });
        return await reply.redirect(linkOf(request), 303);
      } catch (error) {
        const known = error instanceof DomainError ? errorsOfForm.get(error.code) : undefined;
        if (known === undefined) throw error;
        return again(known === 'invalidMessage' ? 400 : 409, known);
      }
    });
  };
}

/** Why nothing was decided, and the page asks again or says what has been decided. */
const errorsOfForm = new Map<string, NonNullable<DecisionForm['error']>>([
  ['participation.invalid' satisfies ErrorCode, 'invalidMessage'],
  ['participation.capacity_exhausted' satisfies ErrorCode, 'full'],
  ['link.changed' satisfies ErrorCode, 'changed'],
  ['link.not_allowed' satisfies ErrorCode, 'decided'],
  ['link.too_late' satisfies ErrorCode, 'decided'],
]);

function describeRequestVisit(
  request: FastifyRequest,
  booking: RequestedBooking,
  provider: PublicProvider,
): RequestVisit {
  const { language, locale } = pageLanguage(request, booking.language, provider.crmLanguage);
  const frame = describeFrame(request, language, provider);
  return {
    booking,
    provider,
    texts: textsOf[language].decide,
    labels: textsOf[language].labels,
    errorTitle: textsOf[language].error,
    locale,
    frame: { ...frame, about: { ...frame.about!, isForProvider: true } },
  };
}

function pageOf(visit: RequestVisit, link: string, form: DecisionForm = { message: '' }) {
  return renderPage('decide', visit.frame, { ...describeRequest(visit, form), link });
}
