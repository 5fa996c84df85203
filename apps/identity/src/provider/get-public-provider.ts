import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import type { IdentityDependencies } from '../dependencies.ts';

/** What strangers may know of a provider, by its id alone, and of its CRM. Rejects with `provider.not_found`. */
export async function getPublicProvider({ database }: IdentityDependencies, providerId: string) {
  const notFound = () => new DomainError('provider.not_found');
  if (!isUuid(providerId)) throw notFound();
  return database.kysely
    .selectFrom('provider')
    .innerJoin('crm', 'crm.crmId', 'provider.crmId')
    .select([
      'provider.name',
      'provider.email',
      'provider.mobile',
      'provider.phone',
      'provider.impressum',
      'provider.timeZone',
    ])
    .select((select) => select.fn.coalesce('crm.name', 'crm.crmId').as('crmName'))
    .select([
      'crm.language as crmLanguage',
      'crm.colour as crmColour',
      'crm.imprint as crmImprint',
      'crm.privacyUrl as crmPrivacyUrl',
      'crm.sandbox',
    ])
    .where('provider.id', '=', providerId)
    .executeTakeFirstOrThrow(notFound);
}
