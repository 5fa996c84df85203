import { Type } from 'typebox';
import { pathReference } from '../fields.ts';

/** What is in the path of every operation. */
export const crmParams = Type.Object({ crmId: pathReference('ID of the calling CRM.') });

/** What is in the path of every operation on something that a provider has. */
export const providerParams = Type.Object({ ...crmParams.properties, providerRef: pathReference('Reference of the provider.') });
