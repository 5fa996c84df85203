/** Updates the configuration of the NATS users from libs/events/src/nats-users.ts: node deploy/write-nats-users.ts */
import { writeFileSync } from 'node:fs';
import { natsUsersDocument, natsUsersFiles } from './test/nats-users-document.ts';

for (const file of natsUsersFiles) writeFileSync(file, natsUsersDocument());
