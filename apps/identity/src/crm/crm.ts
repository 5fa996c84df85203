import { DomainError, type FieldError } from '@scheduling/errors';
import { emptyToNull } from '@scheduling/postgres';
import { isEmailAddress, parseLanguageTag } from '@scheduling/runtime';
import type { Selectable } from 'kysely';
import type { CrmTable } from '../db/schema.ts';
import { parseTimeZone } from '../field/time-zone.ts';
import { brandColumns, brandErrors, type BrandSettings } from './brand.ts';

export type CrmRow = Selectable<CrmTable>;

/** The settings of a CRM in a request: absent keeps the value or takes the default, an empty string clears it. */
export interface CrmSettings extends BrandSettings {
  name?: string | undefined;
  language?: string | undefined;
  timeZone?: string | undefined;
  senderName?: string | undefined;
  senderAddress?: string | undefined;
  notifyOnCustomerDeletion?: boolean | undefined;
  /** Per key; 0: no limit. */
  requestsPerMinute?: number | undefined;
  /** 0: no period of its own. */
  anonymiseAfterDays?: number | undefined;
}

/** The largest value of a Postgres integer. */
const maxRequestsPerMinute = 2 ** 31 - 1;
/** A hundred years, as in calendar's setting. */
const maxAnonymiseAfterDays = 36_500;

export function crmInvalid(errors: FieldError[]): DomainError {
  return new DomainError('crm.invalid', { errors });
}

export function settingErrors(settings: CrmSettings): FieldError[] {
  const { language, timeZone, senderAddress, requestsPerMinute, anonymiseAfterDays } = settings;
  const errors: FieldError[] = [];
  if (language !== undefined && parseLanguageTag(language) === undefined) {
    errors.push({ pointer: '/language', detail: 'must be a BCP 47 language tag' });
  }
  if (timeZone !== undefined && parseTimeZone(timeZone) === undefined) {
    errors.push({ pointer: '/timeZone', detail: 'must be the IANA name of a time zone' });
  }
  if (senderAddress !== undefined && senderAddress !== '' && !isEmailAddress(senderAddress)) {
    errors.push({ pointer: '/senderAddress', detail: 'must be an e-mail address' });
  }
  if (requestsPerMinute !== undefined && requestsPerMinute > maxRequestsPerMinute) {
    errors.push({ pointer: '/requestsPerMinute', detail: `must be at most ${maxRequestsPerMinute}` });
  }
  if (anonymiseAfterDays !== undefined && anonymiseAfterDays > maxAnonymiseAfterDays) {
    errors.push({ pointer: '/anonymiseAfterDays', detail: `must be at most ${maxAnonymiseAfterDays}` });
  }
  return [...errors, ...brandErrors(settings)];
}

/**
 * The columns of the settings. An undefined one keeps its value, or takes the default in an insert. Only for settings
 * without {@link settingErrors}.
 */
export function settingColumns(settings: CrmSettings) {
  const {
    name,
    language,
    timeZone,
    senderName,
    senderAddress,
    notifyOnCustomerDeletion,
    requestsPerMinute,
    anonymiseAfterDays,
  } = settings;
  return {
    ...emptyToNull({ name, senderName, senderAddress }),
    language: language && parseLanguageTag(language),
    timeZone: timeZone && parseTimeZone(timeZone),
    notifyOnCustomerDeletion,
    requestsPerMinute,
    anonymiseAfterDays: anonymiseAfterDays === 0 ? null : anonymiseAfterDays,
    ...brandColumns(settings),
  };
}
