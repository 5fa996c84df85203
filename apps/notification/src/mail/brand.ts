import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { multiLine, singleLine } from '@scheduling/presentation';
import type { Texts } from '../language/texts.ts';
import { senderNameOf } from './mail-addresses.ts';

/** How a CRM presents itself in its mails. */
export interface Brand {
  /** Carries white text. Undefined: the colours of the service. */
  colour: string | undefined;
  logo: { url: string; name: string } | undefined;
}

export function brandOf(crm: Crm): Brand {
  return {
    colour: crm.colour,
    logo: crm.logoUrl === undefined ? undefined : { url: crm.logoUrl, name: senderNameOf(crm) },
  };
}

/** At the foot of a mail: nobody reads replies if they go to the address of the service. */
export function automaticOf(
  crm: Crm,
  { name, email }: Pick<Provider, 'name' | 'email'>,
  { automatic, noReply }: Texts,
): string {
  return email === undefined && !crm.senderAddress ? `${automatic} ${noReply(singleLine(name))}` : automatic;
}

/** The lines of each legal notice: that of the provider if the mail is about its appointments, and that of the CRM. */
export function imprintsOf(crm: Crm, provider?: Provider): string[][] {
  return [provider?.impressum, crm.imprint]
    .map((text) =>
      multiLine(text ?? '')
        .split('\n')
        .filter(Boolean),
    )
    .filter((lines) => lines.length > 0);
}
