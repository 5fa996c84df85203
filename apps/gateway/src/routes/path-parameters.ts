import { Type } from 'typebox';
import { pathReference } from '../fields.ts';

/** The path parameters of every operation. */
export const crmParams = Type.Object({ crmId: pathReference('ID of the calling CRM.') });

/** The path parameters of every operation on something that belongs to a provider. */
export const providerParams = Type.Object({
  ...crmParams.properties,
  providerRef: pathReference('Reference of the provider.'),
});

/** The path parameters of every operation on something that belongs to a resource. */
export const resourceParams = Type.Object({
  ...providerParams.properties,
  resourceRef: pathReference('Reference of the resource.'),
});
