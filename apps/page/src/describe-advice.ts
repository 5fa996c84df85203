import { contactOf, singleLine } from '@scheduling/presentation';
import type { Visit } from './visit.ts';

/** Whom to ask. */
export interface Advice {
  text: string;
  /** Address and numbers, as far as there are any. */
  contact: ReturnType<typeof contactOf>;
}

/** For what cannot be done here. */
export function describeAdvice({ texts, provider }: Pick<Visit, 'texts' | 'provider'>): Advice {
  const contact = contactOf(provider);
  return { text: `${texts.ask(singleLine(provider.name))}${contact.length > 0 ? ':' : '.'}`, contact };
}
