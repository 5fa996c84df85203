import type { Service } from '@scheduling/runtime';

/**
 * The services that may call each method, by the names in their certificates; the diagram in docs/architecture.md shows
 * the same calls.
 */
export const callers = {
  ParticipationMailService: {
    listParticipationMails: ['gateway'],
    resendMail: ['gateway'],
  },
  SandboxMailService: {
    listSandboxMails: ['gateway'],
  },
} satisfies Record<string, Record<string, Service[]>>;
