/** Updates the types of the client with the API document: node apps/gateway/write-client-types.ts */
import { writeFileSync } from 'node:fs';
import { clientTypes, clientTypesFile } from './test/client-types.ts';

writeFileSync(clientTypesFile, await clientTypes());
