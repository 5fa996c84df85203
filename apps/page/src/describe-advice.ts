import { contactOf, singleLine } from '@scheduling/presentation';
import type { Visit } from './visit.ts';

/** Whom to ask. */
export interface Advice {
  text: string;
  /** Address and numbers, as far as there are any. */
  contact: ReturnType<typeof contactOf>;
}

/**
 * For what cannot be done here.
 *
 * @param ask what the provider is named by
 */
export function describeAdvice(
  { texts, provider }: Pick<Visit, 'texts' | 'provider'>,
  ask: (provider: string) => string = texts.ask,
): Advice {
  const contact = contactOf(provider);
  return { text: `${ask(singleLine(provider.name))}${contact.length > 0 ? ':' : '.'}`, contact };
}
