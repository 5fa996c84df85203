import { PublicProvider } from '@scheduling/contracts/identity/v1';
import { expect, it } from 'vitest';
import { describeAdvice } from './describe-advice.ts';
import { textsOf } from './texts/texts-of.ts';

const adviceOf = (contact: { email?: string; phone?: string }) =>
  describeAdvice({ texts: textsOf.en, provider: PublicProvider.fromPartial({ name: 'Dr. Blum', ...contact }) });

it('names the provider, and announces only what follows', () => {
  expect(adviceOf({ phone: '+49 30 1234567' })).toEqual({
    text: 'Please contact Dr. Blum:',
    contact: [{ text: '+49 30 1234567', link: 'tel:+49301234567' }],
  });
  expect(adviceOf({})).toEqual({ text: 'Please contact Dr. Blum.', contact: [] });
});
