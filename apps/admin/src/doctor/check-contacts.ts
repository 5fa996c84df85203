import { MailLinkServiceService } from '@scheduling/contracts/calendar/v1';
import { AdminServiceService, type ProviderWithoutContact } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { reasonOf } from '@scheduling/runtime';
import { callOptions } from '../call-options.ts';
import { addressVariable, type System } from '../config.ts';
import { type Finding, notChecked, ok, warning } from './finding.ts';

const check = 'contacts in mails';
const maxNamed = 5;

/** Whether mails tell persons, by a link or an address or number of the provider, how to change a booking. */
export async function checkContacts({ services: { identity, calendar } }: System): Promise<Finding> {
  if (identity === undefined) return notChecked(check, addressVariable('identity'));
  if (calendar === undefined) return notChecked(check, addressVariable('calendar'));
  try {
    using admin = createClient(AdminServiceService, 'identity', identity, callOptions());
    using links = createClient(MailLinkServiceService, 'calendar', calendar, callOptions());
    const { providers, count } = await admin.listProvidersWithoutContact({});
    const withoutLink = await links.listProvidersWithoutLink({ providers });
    const ids = new Set(withoutLink.providers.map(({ providerId }) => providerId));
    return describe(
      providers.filter(({ providerId }) => ids.has(providerId)),
      { examined: providers.length, all: count },
    );
  } catch (error) {
    // A service that does not answer is reported by another check.
    return { check, level: 'not checked', seen: reasonOf(error) };
  }
}

function describe(silent: ProviderWithoutContact[], { examined, all }: { examined: number; all: number }): Finding {
  const limits =
    all > examined ? ` (of ${all} without an address or a number, the first ${examined} were examined)` : '';
  if (silent.length === 0) return ok(check, `of each provider, mails have a link or name whom to ask${limits}`);
  const named = silent.slice(0, maxNamed).map(({ crmId, reference }) => `${reference} of CRM ${crmId}`);
  const names = [...named, ...(silent.length > maxNamed ? ['…'] : [])].join(', ');
  return warning(
    check,
    `neither a link nor an e-mail address or number for ${silent.length}: ${names}${limits}`,
    'persons cannot learn how to cancel: ask the CRM to give each an address or a number, or to set selfService in its booking rules (docs/guides/links.md)',
  );
}
