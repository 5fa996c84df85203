import { readEnvironment } from '@scheduling/runtime';
import { readServiceSettings } from '@scheduling/service';

export type Config = ReturnType<typeof readConfig>;

/** The only reader of the environment. */
export function readConfig(environment: NodeJS.ProcessEnv) {
  return readEnvironment(environment, (read) => ({
    ...readServiceSettings(read),
    identityAddress: read.text('IDENTITY_ADDRESS'),
    calendarAddress: read.text('CALENDAR_ADDRESS'),
    customerAddress: read.text('CUSTOMER_ADDRESS'),
  }));
}
