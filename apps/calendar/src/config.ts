import { namedKeysFormat, parseNamedKeys, readEnvironment } from '@scheduling/runtime';
import { readServiceSettings } from '@scheduling/service';

export type Config = ReturnType<typeof readConfig>;

/** The only reader of the environment. */
export function readConfig(environment: NodeJS.ProcessEnv) {
  return readEnvironment(environment, (read) => ({
    ...readServiceSettings(read),
    identityAddress: read.text('IDENTITY_ADDRESS'),
    customerAddress: read.text('CUSTOMER_ADDRESS'),
    /** The keys that sign the links of persons; the first one signs, all of them verify. */
    linkKeys: read.parsed('LINK_KEYS', namedKeysFormat, parseNamedKeys),
    /** How long after its end an appointment becomes archived. */
    archiveAfterDays: read.integer('ARCHIVE_AFTER_DAYS', { min: 0, max: 36_500 }, 365),
    /**
     * How long after the end of its appointment a participation is anonymised, unless its CRM has a shorter period of
     * its own; 0: only then.
     */
    anonymiseAfterDays: read.integer('ANONYMISE_AFTER_DAYS', { min: 0, max: 36_500 }, 0),
    /**
     * When off, reservations still expire on time; their rows just remain until another replica or request removes
     * them.
     */
    reservationSweeper: read.oneOf('RESERVATION_SWEEPER', ['on', 'off'], 'on'),
  }));
}
